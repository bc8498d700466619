// Linear layers and experts: which worker multiplies what, and what becomes of the products.
#include "kernels/avx512/avx512_ops.h"
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/math.h"
#include "kernels/avx512/scratch.h"
#include "kernels/avx512/simd.h"
#include "kernels/packed_layout.h"

namespace fulgur::kernels::avx512 {
namespace {

Gemm GemmOf(WeightFormat format, Gemm bf16) {
  switch (format) {
    case WeightFormat::kF32:
      return GemmF32;
    case WeightFormat::kBf16:
    case WeightFormat::kFp8Block:
      return bf16;
    case WeightFormat::kInt8:
    case WeightFormat::kInt4:
    case WeightFormat::kFp4:
      return GemmInteger;
  }
  return nullptr;
}

int64_t Blocks(const PackedLinear& weight) { return CeilDiv(weight.out, kBlockChannels); }

// Splits a list of block ranges of different weight among the workers: a worker takes the blocks
// that begin in its share of the total.
class Split {
 public:
  Split(int64_t total, const base::WorkerRank& worker)
      : begin_(total * worker.rank() / worker.size()),
        end_(total * (worker.rank() + 1) / worker.size()) {}

  // This worker's part [begin, end) of the next `blocks` blocks, which weigh `cost` each.
  struct Range {
    int64_t begin, end;
  };
  Range Next(int64_t blocks, int64_t cost) {
    const Range range{First(begin_, blocks, cost), First(end_, blocks, cost)};
    offset_ += blocks * cost;
    return range;
  }

 private:
  // The first block that begins at or after `at`.
  int64_t First(int64_t at, int64_t blocks, int64_t cost) const {
    if (at <= offset_) return 0;
    return MinInt(blocks, CeilDiv(at - offset_, cost));
  }

  int64_t begin_;
  int64_t end_;
  int64_t offset_ = 0;
};

// What a block costs: its bytes for few rows, its products for many. Only a matter of balance.
int64_t BlockCost(const PackedLinear& weight, int64_t rows) {
  const int64_t bytes = PanelBytes(weight.format, weight.in) * (64 / PanelChannels(weight.format));
  const int64_t per_row = ActivationOf(weight.format) == ActivationFormat::kInt8 ? 4 : 8;
  return bytes + rows * weight.in * per_row + 1;
}

void RunLinear(const LinearJob& job, int64_t begin, int64_t end, Gemm gemm) {
  if (begin >= end) return;
  const PackedLinear& weight = *job.weight;
  Require(job.x.cols == weight.in, "rows are as wide as the weight");
  const int64_t ldy = job.y_stride != 0 ? job.y_stride : weight.out;
  const int64_t step = RowsAtATime(weight.format, weight.in);
  RowSet rows;
  for (int64_t t = 0; t < job.x.rows; t += step) {
    PrepareRows(weight.format, job.x, job.x_stride, nullptr, t, MinInt(step, job.x.rows - t), rows);
    for (int64_t block = begin; block < end; ++block) {
      gemm(weight, block, rows, job.y + t * ldy + block * kBlockChannels, ldy);
    }
  }
}

void LinearOp(std::span<const LinearJob> jobs, const base::WorkerRank& worker, Gemm bf16) {
  int64_t total = 0;
  for (const LinearJob& job : jobs)
    total += Blocks(*job.weight) * BlockCost(*job.weight, job.x.rows);
  Split split(total, worker);
  for (const LinearJob& job : jobs) {
    const auto range = split.Next(Blocks(*job.weight), BlockCost(*job.weight, job.x.rows));
    RunLinear(job, range.begin, range.end, GemmOf(job.weight->format, bf16));
  }
}

// h = weight silu(min(gate, limit)) clamp(up, -limit, limit) for one row of a block.
void SwiGluRow(const float* gate, const float* up, float limit, float weight, int64_t channels,
               float* h) {
  const __m512 high = _mm512_set1_ps(limit > 0.0F ? limit : __builtin_inff());
  const __m512 low = _mm512_sub_ps(_mm512_setzero_ps(), high);
  for (int64_t c = 0; c < channels; c += 16) {
    const __mmask16 lanes = Lanes(channels - c);
    const __m512 g = _mm512_min_ps(_mm512_maskz_loadu_ps(lanes, gate + c), high);
    const __m512 u = _mm512_max_ps(low, _mm512_min_ps(_mm512_maskz_loadu_ps(lanes, up + c), high));
    const __m512 silu = _mm512_mul_ps(g, Sigmoid(g));
    _mm512_mask_storeu_ps(h + c, lanes,
                          _mm512_mul_ps(_mm512_mul_ps(silu, u), _mm512_set1_ps(weight)));
  }
}

void GateUpBlock(const ExpertArgs& args, const ExpertTask& task, int64_t block, int32_t slot,
                 const RowSet& rows, const RowSet& up_rows, Gemm bf16) {
  auto* gate = reinterpret_cast<float*>(Scratch(ScratchUse::kGate, 2 * kMaxRows * 64 * 4));
  float* up = gate + kMaxRows * 64;
  GemmOf(task.gate->format, bf16)(*task.gate, block, rows, gate, 64);
  GemmOf(task.up->format, bf16)(*task.up, block, up_rows, up, 64);
  const int64_t channels = MinInt(64, task.gate->out - block * 64);
  for (int64_t r = 0; r < rows.rows; ++r) {
    SwiGluRow(gate + r * 64, up + r * 64, args.swiglu_limit, args.slot_weight[slot + r], channels,
              args.h + (slot + r) * args.expert_size + block * 64);
  }
}

void GateUp(const ExpertArgs& args, const ExpertTask& task, int64_t begin, int64_t end, Gemm bf16) {
  if (begin >= end) return;
  const WeightFormat format = task.gate->format;
  const WeightFormat up_format = task.up->format;
  const int64_t step =
      MinInt(RowsAtATime(format, task.gate->in), RowsAtATime(up_format, task.up->in));
  RowSet rows;
  RowSet other;
  for (int64_t s = 0; s < task.num_slots; s += step) {
    const auto slot = static_cast<int32_t>(task.first_slot + s);
    const int64_t count = MinInt(step, task.num_slots - s);
    PrepareRows(format, args.x, 0, args.slot_row, slot, count, rows);
    if (up_format != format) PrepareRows(up_format, args.x, 0, args.slot_row, slot, count, other);
    const RowSet& up_rows = up_format == format ? rows : other;
    for (int64_t block = begin; block < end; ++block) {
      GateUpBlock(args, task, block, slot, rows, up_rows, bf16);
    }
  }
}

void GateUpOp(const ExpertArgs& args, const base::WorkerRank& worker, Gemm bf16) {
  const auto cost = [](const ExpertTask& task) {
    return BlockCost(*task.gate, task.num_slots) + BlockCost(*task.up, task.num_slots);
  };
  int64_t total = 0;
  for (const ExpertTask& task : args.tasks) total += Blocks(*task.gate) * cost(task);
  Split split(total, worker);
  for (const ExpertTask& task : args.tasks) {
    const auto range = split.Next(Blocks(*task.gate), cost(task));
    GateUp(args, task, range.begin, range.end, bf16);
  }
}

void AddBlock(const ExpertArgs& args, int32_t slot, int64_t rows, int64_t block, int64_t hidden,
              const float* tile) {
  const int64_t channels = MinInt(64, hidden - block * 64);
  for (int64_t r = 0; r < rows; ++r) {
    float* out = args.out + args.slot_row[slot + r] * hidden + block * 64;
    for (int64_t c = 0; c < channels; c += 16) {
      const __mmask16 lanes = Lanes(channels - c);
      const __m512 sum =
          _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, out + c), _mm512_loadu_ps(tile + r * 64 + c));
      _mm512_mask_storeu_ps(out + c, lanes, sum);
    }
  }
}

void Down(const ExpertArgs& args, const ExpertTask& task, int64_t begin, int64_t end, Gemm bf16) {
  const PackedLinear& weight = *task.down;
  auto* tile = reinterpret_cast<float*>(Scratch(ScratchUse::kGate, 2 * kMaxRows * 64 * 4));
  const int64_t step = RowsAtATime(weight.format, weight.in);
  RowSet rows;
  for (int64_t s = 0; s < task.num_slots; s += step) {
    const auto slot = static_cast<int32_t>(task.first_slot + s);
    const int64_t count = MinInt(step, task.num_slots - s);
    PrepareRows(weight.format, args.h_rows, 0, nullptr, slot, count, rows);
    for (int64_t block = begin; block < end; ++block) {
      GemmOf(weight.format, bf16)(weight, block, rows, tile, 64);
      AddBlock(args, slot, count, block, weight.out, tile);
    }
  }
}

// Workers own channels and pass over all experts in order, so sums need no atomics and their order
// is that of the tasks.
void DownOp(const ExpertArgs& args, const base::WorkerRank& worker, Gemm bf16) {
  if (args.tasks.empty()) return;
  const int64_t hidden = args.tasks.front().down->out;
  const auto [begin, end] = worker.Share(CeilDiv(hidden, kBlockChannels));
  const int64_t first = begin * kBlockChannels;
  const int64_t last = MinInt(end * kBlockChannels, hidden);
  if (first >= last) return;
  for (int64_t t = 0; t < args.rows; ++t) {
    __builtin_memset(args.out + t * hidden + first, 0, static_cast<size_t>(last - first) * 4);
  }
  for (const ExpertTask& task : args.tasks) Down(args, task, begin, end, bf16);
}

}  // namespace

void LinearDot(std::span<const LinearJob> jobs, const base::WorkerRank& worker) {
  LinearOp(jobs, worker, GemmBf16Dot);
}
void LinearFma(std::span<const LinearJob> jobs, const base::WorkerRank& worker) {
  LinearOp(jobs, worker, GemmBf16Fma);
}
void ExpertGateUpDot(const ExpertArgs& args, const base::WorkerRank& worker) {
  GateUpOp(args, worker, GemmBf16Dot);
}
void ExpertGateUpFma(const ExpertArgs& args, const base::WorkerRank& worker) {
  GateUpOp(args, worker, GemmBf16Fma);
}
void ExpertDownDot(const ExpertArgs& args, const base::WorkerRank& worker) {
  DownOp(args, worker, GemmBf16Dot);
}
void ExpertDownFma(const ExpertArgs& args, const base::WorkerRank& worker) {
  DownOp(args, worker, GemmBf16Fma);
}

}  // namespace fulgur::kernels::avx512
