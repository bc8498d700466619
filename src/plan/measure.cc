#include "plan/measure.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "kernels/random_weights.h"
#include "kv/store.h"
#include "model/weight_plan.h"

namespace fulgur::plan {
namespace {

using kernels::WeightFormat;

constexpr int64_t kProbeBytes = int64_t{512} << 20;
constexpr int kReadRounds = 5;
constexpr int kBarriers = 100;           // of one of the rounds, whose fastest counts
constexpr double kBarrierSeconds = 0.1;  // for all rounds; more where workers lack cores
constexpr double kKernelSeconds = 0.03;  // of one measurement
constexpr int64_t kManyRows = 64;
constexpr int64_t kInputs = 1024;
constexpr int64_t kWeightBytes = int64_t{384} << 10;  // stays in the level-2 cache

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Independent sums, so that the loads and not the additions are what takes time.
uint64_t SumOf(std::span<const uint64_t> words) {
  constexpr size_t kSums = 32;
  std::array<uint64_t, kSums> sums = {};
  for (size_t i = 0; i + kSums <= words.size(); i += kSums) {
    for (size_t j = 0; j < kSums; ++j) sums[j] += words[i + j];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

// Inputs that are whole blocks of every format, and as many channels as the cache holds.
kernels::RandomWeight CachedWeight(WeightFormat format) {
  const kernels::LinearSource unit{.format = format, .out = kernels::kBlockChannels, .in = kInputs};
  const int64_t blocks = std::max<int64_t>(1, kWeightBytes / kernels::PackedBytes(unit, format));
  return kernels::MakeRandomWeight(format, blocks * kernels::kBlockChannels, kInputs, 1,
                                   /*wide_scales=*/false);
}

// Products of `rows` rows per second, of every worker by itself.
double ProductsPerSecond(const kernels::OpTable& ops, base::WorkerTeam& team,
                         const kernels::PackedLinear& weight, const kernels::ActivationRows& x) {
  std::vector<double> rates(static_cast<size_t>(team.size()));
  std::vector<std::vector<float>> results(
      rates.size(), std::vector<float>(static_cast<size_t>(x.rows * weight.out)));
  team.Run([&](const base::WorkerRank& worker) {
    const auto rank = static_cast<size_t>(worker.rank());
    kernels::LinearJob job;
    job.weight = &weight;
    job.x = x;
    job.y = results[rank].data();
    const base::WorkerRank alone(0, 1, nullptr);
    ops.linear({&job, 1}, alone);
    worker.Barrier();
    const double start = ThreadSeconds();
    int64_t count = 0;
    double seconds = 0.0;
    while (seconds < kKernelSeconds) {
      ops.linear({&job, 1}, alone);
      ++count;
      seconds = ThreadSeconds() - start;
    }
    rates[rank] = static_cast<double>(count) / seconds;
  });
  double sum = 0.0;
  for (const double rate : rates) sum += rate;
  return sum;
}

ProductRate MeasureProduct(const kernels::OpTable& ops, base::WorkerTeam& team,
                           WeightFormat format) {
  const kernels::RandomWeight weight = CachedWeight(format);
  const kernels::RandomRows one = kernels::MakeRandomRows(1, kInputs, 2);
  const kernels::RandomRows many = kernels::MakeRandomRows(kManyRows, kInputs, 3);
  const double one_rate = ProductsPerSecond(ops, team, weight.packed, one.view);
  const double many_rate = ProductsPerSecond(ops, team, weight.packed, many.view);
  const double more_ops = 2.0 * static_cast<double>(weight.packed.out) *
                          static_cast<double>(kInputs) * static_cast<double>(kManyRows - 1);
  const double more_seconds = std::max(1.0 / many_rate - 1.0 / one_rate, 0.1 / many_rate);
  return {.unpack = one_rate * static_cast<double>(weight.packed.bytes.size()),
          .ops = more_ops / more_seconds};
}

double MeasureBarrier(base::WorkerTeam& team) {
  if (team.size() == 1) return 0.0;
  double fastest = std::numeric_limits<double>::infinity();
  std::atomic<bool> enough = false;
  const double end = WallSeconds() + kBarrierSeconds;
  team.Run([&](const base::WorkerRank& worker) {
    while (!enough) {
      const double start = WallSeconds();
      for (int i = 0; i < kBarriers; ++i) worker.Barrier();
      const double now = WallSeconds();
      if (worker.rank() == 0) {
        fastest = std::min(fastest, (now - start) / kBarriers);
        enough = now > end;
      }
      worker.Barrier();  // nobody looks before it is decided
    }
  });
  return fastest;
}

}  // namespace

struct ReadProbe::Memory {
  std::unique_ptr<model::WeightArena> arena;
  int64_t share_words = 0;  // of one worker

  std::span<uint64_t> ShareOf(int worker) const {
    return {reinterpret_cast<uint64_t*>(arena->data()) + worker * share_words,
            static_cast<size_t>(share_words)};
  }
};

ReadProbe::ReadProbe(std::unique_ptr<Memory> memory) : memory_(std::move(memory)) {}
ReadProbe::ReadProbe(ReadProbe&&) noexcept = default;
ReadProbe& ReadProbe::operator=(ReadProbe&&) noexcept = default;
ReadProbe::~ReadProbe() = default;

absl::StatusOr<ReadProbe> ReadProbe::Create(base::WorkerTeam& team, int64_t bytes) {
  auto memory = std::make_unique<Memory>();
  ASSIGN_OR_RETURN(memory->arena, model::WeightArena::Allocate(bytes));
  memory->share_words = bytes / team.size() / static_cast<int64_t>(sizeof(uint64_t));
  team.Run([&](const base::WorkerRank& worker) {
    std::ranges::fill(memory->ShareOf(worker.rank()), uint64_t{1});
  });
  return ReadProbe(std::move(memory));
}

double ReadProbe::ReadRate(base::WorkerTeam& team, int workers) const {
  std::vector<uint64_t> sums(static_cast<size_t>(team.size()));
  std::vector<double> rates(sums.size());
  const auto bytes = static_cast<double>(memory_->share_words) * sizeof(uint64_t);
  team.Run([&](const base::WorkerRank& worker) {
    if (worker.rank() >= workers) return;
    const auto rank = static_cast<size_t>(worker.rank());
    const double start = ThreadSeconds();
    sums[rank] = SumOf(memory_->ShareOf(worker.rank()));
    rates[rank] = bytes / (ThreadSeconds() - start);
  });
  const volatile uint64_t kept = sums[0];  // the sums are wanted
  static_cast<void>(kept);
  double total = 0.0;
  for (const double rate : rates) total += rate;
  return total;
}

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

absl::StatusOr<MachineFigures> MeasureMachine(const base::Machine& machine,
                                              const kernels::OpTable& ops, base::WorkerTeam& team) {
  MachineFigures figures{
      .name = machine.cpu_name, .cores = team.size(), .memory_bytes = machine.available_bytes};
  const int64_t bytes =
      std::min(kProbeBytes * ((team.size() + 7) / 8), machine.available_bytes / 4);
  ASSIGN_OR_RETURN(const ReadProbe probe, ReadProbe::Create(team, bytes));
  std::vector<double> all, one;
  for (int round = 0; round < kReadRounds; ++round) {
    all.push_back(probe.ReadRate(team, team.size()));
    one.push_back(probe.ReadRate(team, 1));
  }
  figures.read_rate = Median(all);
  figures.core_read_rate = Median(one);
  for (const WeightFormat format :
       {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kFp8Block, WeightFormat::kInt8,
        WeightFormat::kInt4, WeightFormat::kFp4}) {
    figures.products[static_cast<size_t>(format)] = MeasureProduct(ops, team, format);
  }
  figures.barrier_seconds = MeasureBarrier(team);
  return figures;
}

}  // namespace fulgur::plan
