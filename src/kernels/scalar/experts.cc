#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/packed_layout.h"
#include "kernels/scalar/product.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

// weight silu(min(gate, limit)) clamp(up, -limit, limit); the gate has no lower clamp.
float SwiGlu(float gate, float up, float limit, float weight) {
  if (limit > 0.0F) {
    gate = std::min(gate, limit);
    up = std::clamp(up, -limit, limit);
  }
  const double silu = gate / (1.0 + std::exp(-static_cast<double>(gate)));
  return static_cast<float>(silu * up * weight);
}

void GateUpBlock(const ExpertArgs& args, const ExpertTask& task, int64_t block) {
  const int64_t first = block * kBlockChannels;
  const int64_t count = std::min(kBlockChannels, task.gate->out - first);
  float gate[kMaxProductRows * kBlockChannels];
  float up[kMaxProductRows * kBlockChannels];
  for (int32_t s = 0; s < task.num_slots; s += kMaxProductRows) {
    const int32_t slot = task.first_slot + s;
    const int64_t n = std::min<int64_t>(kMaxProductRows, task.num_slots - s);
    const std::span<const int32_t> rows(args.slot_row + slot, static_cast<size_t>(n));
    BlockProduct(*task.gate, block, args.x, 0, rows, gate);
    BlockProduct(*task.up, block, args.x, 0, rows, up);
    for (int64_t r = 0; r < n; ++r) {
      float* h = args.h + (slot + r) * args.expert_size + first;
      for (int64_t c = 0; c < count; ++c) {
        h[c] = SwiGlu(gate[r * kBlockChannels + c], up[r * kBlockChannels + c], args.swiglu_limit,
                      args.slot_weight[slot + r]);
      }
    }
  }
}

// Adds the expert's contribution to 64 channels of its rows' outputs.
void DownBlock(const ExpertArgs& args, const ExpertTask& task, int64_t block) {
  const int64_t hidden = task.down->out;
  const int64_t first = block * kBlockChannels;
  const int64_t count = std::min(kBlockChannels, hidden - first);
  float tile[kMaxProductRows * kBlockChannels];
  int32_t slots[kMaxProductRows];
  for (int32_t s = 0; s < task.num_slots; s += kMaxProductRows) {
    const int32_t slot = task.first_slot + s;
    const int64_t n = std::min<int64_t>(kMaxProductRows, task.num_slots - s);
    std::iota(slots, slots + n, slot);
    BlockProduct(*task.down, block, args.h_rows, 0, {slots, static_cast<size_t>(n)}, tile);
    for (int64_t r = 0; r < n; ++r) {
      float* out = args.out + args.slot_row[slot + r] * hidden + first;
      for (int64_t c = 0; c < count; ++c) out[c] += tile[r * kBlockChannels + c];
    }
  }
}

}  // namespace

void ExpertGateUp(const ExpertArgs& args, const base::WorkerRank& worker) {
  for (const ExpertTask& task : args.tasks) {
    const auto [begin, end] = worker.Share(CeilDiv(task.gate->out, kBlockChannels));
    for (int64_t block = begin; block < end; ++block) GateUpBlock(args, task, block);
  }
}

void ExpertDown(const ExpertArgs& args, const base::WorkerRank& worker) {
  if (args.tasks.empty()) return;
  const int64_t hidden = args.tasks.front().down->out;
  const auto [begin, end] = worker.Share(CeilDiv(hidden, kBlockChannels));
  const int64_t first = begin * kBlockChannels;
  const int64_t last = std::min(end * kBlockChannels, hidden);
  for (int64_t t = 0; t < args.rows && first < last; ++t) {
    std::fill(args.out + t * hidden + first, args.out + t * hidden + last, 0.0F);
  }
  for (const ExpertTask& task : args.tasks) {
    for (int64_t block = begin; block < end; ++block) DownBlock(args, task, block);
  }
}

}  // namespace fulgur::kernels::scalar
