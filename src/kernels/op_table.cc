#include "kernels/op_table.h"

#include "base/check.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels {
namespace {

constexpr OpTable kScalarOps = {
    .name = "scalar",
    .embed = scalar::Embed,
    .linear = scalar::Linear,
    .norm_rows = scalar::NormRows,
    .hc_post = scalar::HcPost,
    .hc_pre = scalar::HcPre,
    .head_rows = scalar::HeadRows,
    .compress = scalar::Compress,
    .index_scores = scalar::IndexScores,
    .index_select = scalar::IndexSelect,
    .sparse_attention = scalar::SparseAttention,
    .write_rings = scalar::WriteRings,
    .route = scalar::Route,
    .expert_gate_up = scalar::ExpertGateUp,
    .expert_down = scalar::ExpertDown,
};

}  // namespace

bool Supports(const base::Machine& /*machine*/, OpChoice choice) {
  return choice != OpChoice::kAvx512;
}

const OpTable& SelectOps(const base::Machine& machine, OpChoice choice) {
  CHECK(Supports(machine, choice));
  return kScalarOps;
}

}  // namespace fulgur::kernels
