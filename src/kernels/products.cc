#include "kernels/products.h"

#include <algorithm>

#include "kernels/packed_layout.h"
#include "kernels/scratch.h"

namespace fulgur::kernels {
namespace {

BlockProduct ProductOf(const ProductKernels& kernels, WeightFormat format) {
  switch (ActivationOf(format)) {
    case ActivationFormat::kF32:
      return kernels.f32;
    case ActivationFormat::kBf16:
      return kernels.bf16;
    case ActivationFormat::kInt8:
      return kernels.integer;
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
    return std::min<int64_t>(blocks, CeilDiv(at - offset_, cost));
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

void MultiplyBlocks(const LinearJob& job, int64_t begin, int64_t end, BlockProduct product) {
  if (begin >= end) return;
  const PackedLinear& weight = *job.weight;
  Require(job.x.cols == weight.in, "rows are as wide as the weight");
  const int64_t ldy = job.y_stride != 0 ? job.y_stride : weight.out;
  const int64_t step = RowsAtATime(weight.format, weight.in);
  RowSet rows;
  for (int64_t t = 0; t < job.x.rows; t += step) {
    PrepareRows(weight.format, job.x, job.x_stride, nullptr, t,
                std::min<int64_t>(step, job.x.rows - t), rows);
    for (int64_t block = begin; block < end; ++block) {
      product(weight, block, rows, job.y + t * ldy + block * kBlockChannels, ldy);
    }
  }
}

void GateUpBlock(const ExpertArgs& args, const ExpertTask& task, int64_t block, int32_t slot,
                 const RowSet& rows, const RowSet& up_rows, const ProductKernels& kernels) {
  auto* gate = reinterpret_cast<float*>(Scratch(ScratchUse::kGate, 2 * kMaxRows * 64 * 4));
  float* up = gate + kMaxRows * 64;
  ProductOf(kernels, task.gate->format)(*task.gate, block, rows, gate, 64);
  ProductOf(kernels, task.up->format)(*task.up, block, up_rows, up, 64);
  const int64_t channels = std::min<int64_t>(64, task.gate->out - block * 64);
  for (int64_t r = 0; r < rows.rows; ++r) {
    kernels.swiglu(gate + r * 64, up + r * 64, args.swiglu_limit, args.slot_weight[slot + r],
                   channels, args.h + (slot + r) * args.expert_size + block * 64);
  }
}

void GateUp(const ExpertArgs& args, const ExpertTask& task, int64_t begin, int64_t end,
            const ProductKernels& kernels) {
  if (begin >= end) return;
  const WeightFormat format = task.gate->format;
  const WeightFormat up_format = task.up->format;
  const int64_t step =
      std::min<int64_t>(RowsAtATime(format, task.gate->in), RowsAtATime(up_format, task.up->in));
  RowSet rows;
  RowSet other;
  for (int64_t s = 0; s < task.num_slots; s += step) {
    const auto slot = static_cast<int32_t>(task.first_slot + s);
    const int64_t count = std::min<int64_t>(step, task.num_slots - s);
    PrepareRows(format, args.x, 0, args.slot_row, slot, count, rows);
    if (up_format != format) PrepareRows(up_format, args.x, 0, args.slot_row, slot, count, other);
    const RowSet& up_rows = up_format == format ? rows : other;
    for (int64_t block = begin; block < end; ++block) {
      GateUpBlock(args, task, block, slot, rows, up_rows, kernels);
    }
  }
}

void AddBlock(const ExpertArgs& args, int32_t slot, int64_t rows, int64_t block, int64_t hidden,
              const float* tile) {
  const int64_t channels = std::min<int64_t>(64, hidden - block * 64);
  for (int64_t r = 0; r < rows; ++r) {
    float* out = args.out + args.slot_row[slot + r] * hidden + block * 64;
    for (int64_t c = 0; c < channels; ++c) out[c] += tile[r * 64 + c];
  }
}

void Down(const ExpertArgs& args, const ExpertTask& task, int64_t begin, int64_t end,
          const ProductKernels& kernels) {
  const PackedLinear& weight = *task.down;
  auto* tile = reinterpret_cast<float*>(Scratch(ScratchUse::kGate, 2 * kMaxRows * 64 * 4));
  const int64_t step = RowsAtATime(weight.format, weight.in);
  RowSet rows;
  for (int64_t s = 0; s < task.num_slots; s += step) {
    const auto slot = static_cast<int32_t>(task.first_slot + s);
    const int64_t count = std::min<int64_t>(step, task.num_slots - s);
    PrepareRows(weight.format, args.h_rows, 0, nullptr, slot, count, rows);
    for (int64_t block = begin; block < end; ++block) {
      ProductOf(kernels, weight.format)(weight, block, rows, tile, 64);
      AddBlock(args, slot, count, block, weight.out, tile);
    }
  }
}

}  // namespace

void RunLinear(const ProductKernels& kernels, std::span<const LinearJob> jobs,
               const base::WorkerRank& worker) {
  if (jobs.size() == 1) {
    const LinearJob& job = jobs.front();
    const auto [begin, end] = worker.Share(Blocks(*job.weight));
    MultiplyBlocks(job, begin, end, ProductOf(kernels, job.weight->format));
    return;
  }
  int64_t total = 0;
  for (const LinearJob& job : jobs) {
    total += Blocks(*job.weight) * BlockCost(*job.weight, job.x.rows);
  }
  Split split(total, worker);
  for (const LinearJob& job : jobs) {
    const auto range = split.Next(Blocks(*job.weight), BlockCost(*job.weight, job.x.rows));
    MultiplyBlocks(job, range.begin, range.end, ProductOf(kernels, job.weight->format));
  }
}

void RunExpertGateUp(const ProductKernels& kernels, const ExpertArgs& args,
                     const base::WorkerRank& worker) {
  const auto cost = [](const ExpertTask& task) {
    return BlockCost(*task.gate, task.num_slots) + BlockCost(*task.up, task.num_slots);
  };
  int64_t total = 0;
  for (const ExpertTask& task : args.tasks) total += Blocks(*task.gate) * cost(task);
  Split split(total, worker);
  for (const ExpertTask& task : args.tasks) {
    const auto range = split.Next(Blocks(*task.gate), cost(task));
    GateUp(args, task, range.begin, range.end, kernels);
  }
}

// Workers own channels and pass over all experts in order, so sums need no atomics and their order
// is that of the tasks.
void RunExpertDown(const ProductKernels& kernels, const ExpertArgs& args,
                   const base::WorkerRank& worker) {
  if (args.tasks.empty()) return;
  const int64_t hidden = args.tasks.front().down->out;
  const auto [begin, end] = worker.Share(CeilDiv(hidden, kBlockChannels));
  const int64_t first = begin * kBlockChannels;
  const int64_t last = std::min<int64_t>(end * kBlockChannels, hidden);
  if (first >= last) return;
  for (int64_t t = 0; t < args.rows; ++t) {
    __builtin_memset(args.out + t * hidden + first, 0, static_cast<size_t>(last - first) * 4);
  }
  for (const ExpertTask& task : args.tasks) Down(args, task, begin, end, kernels);
}

}  // namespace fulgur::kernels
