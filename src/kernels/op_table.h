// The stages of a DeepSeek-V4 layer as function pointers: the one place where a backend plugs in.
//
// Each op is SPMD: every worker of the team calls it with the same arguments and its own rank,
// does its share and returns without waiting for the others; the caller puts a barrier before
// anybody reads the result. Results depend on neither the number of workers nor the other rows of
// the batch. expert_down, hc_post and a linear that is alone share channels alike, Share(channels,
// kBlockChannels), whatever the rows: without a barrier, each may read what the one before left in
// the worker's own channels. The scalar table is the specification: integer products of other
// tables equal it bit for bit, real-valued ones up to rounding. Ops never fail and never allocate
// after warm-up.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "base/team.h"
#include "kernels/expert_args.h"
#include "kernels/layer_args.h"
#include "kernels/linear.h"

namespace fulgur::kernels {

struct OpTable {
  std::string_view name;

  void (*embed)(const EmbedArgs&, const base::WorkerRank&);

  // Independent products of one region; workers share the channels of all jobs.
  void (*linear)(std::span<const LinearJob>, const base::WorkerRank&);
  void (*norm_rows)(std::span<const NormRowsJob>, const base::WorkerRank&);

  void (*hc_post)(const HcPostArgs&, const base::WorkerRank&);
  void (*hc_pre)(const HcPreArgs&, const base::WorkerRank&);

  void (*head_rows)(std::span<const HeadRowsJob>, const base::WorkerRank&);
  void (*compress)(const CompressArgs&, const base::WorkerRank&);
  void (*index_scores)(const IndexArgs&, const base::WorkerRank&);
  void (*sparse_attention)(const AttentionArgs&, const base::WorkerRank&);

  // Overwrites earlier positions: only after everything that reads them.
  void (*write_rings)(std::span<const RingWriteJob>, const base::WorkerRank&);

  void (*route)(const RouteArgs&, const base::WorkerRank&);
  void (*expert_gate_up)(const ExpertArgs&, const base::WorkerRank&);
  void (*expert_down)(const ExpertArgs&, const base::WorkerRank&);
};

enum class OpChoice { kAuto, kScalar, kAvx2, kAvx512 };

// Every table that this machine can run, the scalar one first and the one that kAuto takes last.
std::vector<const OpTable*> SupportedOps(const base::Machine& machine);

bool Supports(const base::Machine& machine, OpChoice choice);

// The table for a machine; kAuto takes the fastest that it supports. Asking for a table that the
// machine cannot run is a broken invariant: check Supports first.
//
// AVX-512 comes in two tables, since bf16 products by VDPBF16PS and by fp32 FMA round differently
// and a process must use one for everything: VDPBF16PS on AMD, where it has twice the rate of FMA;
// FMA elsewhere (Intel runs VDPBF16PS at half the rate of FMA).
const OpTable& SelectOps(const base::Machine& machine, OpChoice choice);

}  // namespace fulgur::kernels
