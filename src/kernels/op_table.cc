#include "kernels/op_table.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "kernels/avx2/avx2_ops.h"
#include "kernels/avx512/avx512_ops.h"
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
    .sparse_attention = scalar::SparseAttention,
    .write_rings = scalar::WriteRings,
    .route = scalar::Route,
    .expert_gate_up = scalar::ExpertGateUp,
    .expert_down = scalar::ExpertDown,
};

// Ops without a vector form stay scalar.
constexpr OpTable Avx2Ops() {
  OpTable ops = kScalarOps;
  ops.name = "avx2";
  ops.linear = avx2::Linear;
  ops.index_scores = avx2::IndexScores;
  ops.sparse_attention = avx2::SparseAttention;
  ops.expert_gate_up = avx2::ExpertGateUp;
  ops.expert_down = avx2::ExpertDown;
  return ops;
}

constexpr OpTable Avx512Ops() {
  OpTable ops = kScalarOps;
  ops.name = "avx512";
  ops.embed = avx512::Embed;
  ops.norm_rows = avx512::NormRows;
  ops.hc_post = avx512::HcPost;
  ops.hc_pre = avx512::HcPre;
  ops.head_rows = avx512::HeadRows;
  ops.compress = avx512::Compress;
  ops.index_scores = avx512::IndexScores;
  ops.route = avx512::Route;
  ops.sparse_attention = avx512::SparseAttentionFma;
  ops.linear = avx512::LinearFma;
  ops.expert_gate_up = avx512::ExpertGateUpFma;
  ops.expert_down = avx512::ExpertDownFma;
  return ops;
}

constexpr OpTable Avx512Bf16Ops() {
  OpTable ops = Avx512Ops();
  ops.name = "avx512-bf16";
  ops.sparse_attention = avx512::SparseAttentionDot;
  ops.linear = avx512::LinearDot;
  ops.expert_gate_up = avx512::ExpertGateUpDot;
  ops.expert_down = avx512::ExpertDownDot;
  return ops;
}

constexpr OpTable kAvx2Ops = Avx2Ops();
constexpr OpTable kAvx512Ops = Avx512Ops();
constexpr OpTable kAvx512Bf16Ops = Avx512Bf16Ops();

bool DotIsFast(const base::Machine& machine) {
  return machine.cpu_name.find("AMD") != std::string::npos;
}

}  // namespace

std::vector<const OpTable*> SupportedOps(const base::Machine& machine) {
  std::vector<const OpTable*> tables = {&kScalarOps};
  if (machine.isa.avx2) tables.push_back(&kAvx2Ops);
  if (machine.isa.avx512_bf16) tables.push_back(&kAvx512Bf16Ops);
  if (machine.isa.avx512) tables.push_back(&kAvx512Ops);
  if (machine.isa.avx512_bf16 && DotIsFast(machine)) {
    std::iter_swap(tables.end() - 2, tables.end() - 1);
  }
  return tables;
}

bool Supports(const base::Machine& machine, OpChoice choice) {
  if (choice == OpChoice::kAvx2) return machine.isa.avx2;
  return choice != OpChoice::kAvx512 || machine.isa.avx512;
}

const OpTable& SelectOps(const base::Machine& machine, OpChoice choice) {
  CHECK(Supports(machine, choice));
  if (choice == OpChoice::kScalar) return kScalarOps;
  if (choice == OpChoice::kAvx2) return kAvx2Ops;
  return *SupportedOps(machine).back();
}

}  // namespace fulgur::kernels
