// Matrix products as a share of the machine's roofs, one thread.
//
// Every sample is paired, and counted in time of the thread, so that other processes disturb
// little: reading equal bytes (cold), the op on another cold copy of the weight,
// the arithmetic peak. `bw` = median of read time / op time, `peak` = median of op rate / peak
// rate, in percent. Absolute times mean little on a shared machine.
#include <algorithm>
#include <string>
#include <vector>

#include "base/machine.h"
#include "benchmark/benchmark.h"
#include "kernels/op_table.h"
#include "kernels/random_weights.h"
#include "probes.h"

namespace fulgur::bench_kernels {
namespace {

using kernels::WeightFormat;

constexpr int64_t kColdBytes = 192 << 20;  // beyond the caches of the machine
constexpr int kSamples = 40;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size()) / 2,
                   values.end());
  return values[values.size() / 2];
}

struct Case {
  const char* name;
  WeightFormat format;
  int64_t in, out;
};

constexpr Case kCases[] = {
    {"fp8", WeightFormat::kFp8Block, 1024, 8192}, {"fp8", WeightFormat::kFp8Block, 4096, 2048},
    {"fp4", WeightFormat::kFp4, 4096, 2048},      {"fp4", WeightFormat::kFp4, 1024, 512},
    {"int8", WeightFormat::kInt8, 4096, 2048},    {"bf16", WeightFormat::kBf16, 1024, 1024},
    {"int4", WeightFormat::kInt4, 4096, 2048},    {"f32", WeightFormat::kF32, 4096, 256},
};

// Copies of one packed weight, so that each product finds its weight outside the caches.
class ColdWeights {
 public:
  explicit ColdWeights(const Case& c)
      : weight_(kernels::MakeRandomWeight(c.format, c.out, c.in, 1, false)),
        bytes_(weight_.packed_bytes.size()),
        copies_(std::max<int64_t>(4, kColdBytes / bytes_)),
        storage_(copies_ * bytes_) {
    for (int64_t i = 0; i < copies_; ++i) {
      std::copy_n(weight_.packed_bytes.data(), bytes_, storage_.data() + i * bytes_);
    }
  }

  int64_t bytes() const { return bytes_; }

  kernels::PackedLinear Next() {
    next_ = (next_ + 1) % copies_;
    kernels::PackedLinear packed = weight_.packed;
    packed.bytes = {storage_.data() + next_ * bytes_, static_cast<size_t>(bytes_)};
    return packed;
  }

 private:
  kernels::RandomWeight weight_;
  int64_t bytes_;
  int64_t copies_;
  HugeMemory storage_;
  int64_t next_ = 0;
};

void BenchLinear(benchmark::State& state, const kernels::OpTable& ops, const Case& c) {
  ColdWeights weights(c);
  const int64_t rows = state.range(0);
  const kernels::RandomRows x = kernels::MakeRandomRows(rows, c.in, 2);
  std::vector<float> y(static_cast<size_t>(rows * c.out));
  const bool int8 = kernels::ActivationOf(c.format) == kernels::ActivationFormat::kInt8;
  std::vector<double> bandwidth, peak;
  for (auto _ : state) {
    const double read = ReadSeconds(weights.Next().bytes.data(), weights.bytes());
    const kernels::PackedLinear packed = weights.Next();
    const kernels::LinearJob job{.weight = &packed, .x = x.view, .y = y.data()};
    const double start = Now();
    ops.linear({&job, 1}, base::WorkerRank(0, 1, nullptr));
    const double seconds = Now() - start;
    state.SetIterationTime(seconds);
    const double rate = 2.0 * static_cast<double>(rows * c.in * c.out) / seconds;
    bandwidth.push_back(read / seconds);
    peak.push_back(rate / (int8 ? Int8PeakOps() : Bf16PeakOps()));
  }
  state.counters["bw"] = 100.0 * Median(bandwidth);
  state.counters["peak"] = 100.0 * Median(peak);
}

void RegisterAll() {
  const base::Machine machine = base::DetectMachine();
  for (const kernels::OpTable* ops : kernels::SupportedOps(machine)) {
    if (ops->name == "scalar") continue;
    for (const Case& c : kCases) {
      const std::string name = std::string(ops->name) + "/" + c.name + "/" + std::to_string(c.in) +
                               "x" + std::to_string(c.out);
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(), [ops, &c](benchmark::State& state) { BenchLinear(state, *ops, c); });
      for (int64_t rows : {1, 2, 4, 8, 16, 32, 128}) bench->Arg(rows);
      bench->UseManualTime()->Iterations(kSamples)->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace fulgur::bench_kernels

int main(int argc, char** argv) {
  fulgur::bench_kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
