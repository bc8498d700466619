#include "timed_ops.h"

#include <array>

#include "plan/measure.h"

namespace fulgur::bench_kernels {
namespace {

using kernels::OpTable;

constexpr std::array<const char*, 13> kNames = {
    "embed",     "linear",         "norm_rows",    "hc_post",   "hc_pre",
    "head_rows", "compress",       "index_scores", "attention", "write_rings",
    "route",     "expert_gate_up", "expert_down"};

OpTable wrapped;
OpTable timed;
std::array<double, kNames.size()> seconds;

// Times the op that `member` points to; slot: its place in kNames.
template <auto member, size_t slot, typename Args>
void Timed(Args args, const base::WorkerRank& worker) {
  const double start = plan::ThreadSeconds();
  (wrapped.*member)(args, worker);
  if (worker.rank() == 0) seconds[slot] += plan::ThreadSeconds() - start;
}

}  // namespace

const OpTable& TimedOps(const OpTable& ops) {
  using namespace kernels;
  wrapped = ops;
  timed.name = ops.name;
  timed.embed = Timed<&OpTable::embed, 0, const EmbedArgs&>;
  timed.linear = Timed<&OpTable::linear, 1, std::span<const LinearJob>>;
  timed.norm_rows = Timed<&OpTable::norm_rows, 2, std::span<const NormRowsJob>>;
  timed.hc_post = Timed<&OpTable::hc_post, 3, const HcPostArgs&>;
  timed.hc_pre = Timed<&OpTable::hc_pre, 4, const HcPreArgs&>;
  timed.head_rows = Timed<&OpTable::head_rows, 5, std::span<const HeadRowsJob>>;
  timed.compress = Timed<&OpTable::compress, 6, const CompressArgs&>;
  timed.index_scores = Timed<&OpTable::index_scores, 7, const IndexArgs&>;
  timed.sparse_attention = Timed<&OpTable::sparse_attention, 8, const AttentionArgs&>;
  timed.write_rings = Timed<&OpTable::write_rings, 9, std::span<const RingWriteJob>>;
  timed.route = Timed<&OpTable::route, 10, const RouteArgs&>;
  timed.expert_gate_up = Timed<&OpTable::expert_gate_up, 11, const ExpertArgs&>;
  timed.expert_down = Timed<&OpTable::expert_down, 12, const ExpertArgs&>;
  ResetTimes();
  return timed;
}

void ResetTimes() { seconds.fill(0.0); }

std::vector<std::pair<std::string_view, double>> OpSeconds() {
  std::vector<std::pair<std::string_view, double>> spent;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (seconds[i] > 0.0) spent.emplace_back(kNames[i], seconds[i]);
  }
  return spent;
}

}  // namespace fulgur::bench_kernels
