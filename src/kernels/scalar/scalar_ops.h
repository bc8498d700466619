// The scalar table: plain loops, double accumulation where the maths is real-valued. It is the
// specification of every op and the path of reference precision.
#pragma once

#include <span>

#include "kernels/op_table.h"

namespace fulgur::kernels::scalar {

void Embed(const EmbedArgs& args, const base::WorkerRank& worker);                    // rows.cc
void WriteRings(std::span<const RingWriteJob> jobs, const base::WorkerRank& worker);  // rows.cc
void Linear(std::span<const LinearJob> jobs, const base::WorkerRank& worker);         // linear.cc
void NormRows(std::span<const NormRowsJob> jobs, const base::WorkerRank& worker);     // quantize.cc
void ExpertGateUp(const ExpertArgs& args, const base::WorkerRank& worker);            // experts.cc
void ExpertDown(const ExpertArgs& args, const base::WorkerRank& worker);              // experts.cc
void HcPost(const HcPostArgs& args, const base::WorkerRank& worker);  // hyper_connection.cc
void HcPre(const HcPreArgs& args, const base::WorkerRank& worker);    // hyper_connection.cc
void HeadRows(std::span<const HeadRowsJob> jobs, const base::WorkerRank& worker);  // attention.cc
void SparseAttention(const AttentionArgs& args, const base::WorkerRank& worker);   // attention.cc
void Compress(const CompressArgs& args, const base::WorkerRank& worker);           // compressor.cc
void IndexScores(const IndexArgs& args, const base::WorkerRank& worker);           // indexer.cc
void Route(const RouteArgs& args, const base::WorkerRank& worker);                 // router.cc

// Parts that other tables share.

// values = head x [dim] of row `row`, transformed.
void TransformHead(const HeadTransform& transform, const float* x, int64_t dim, int64_t row,
                   float* values);

// A head's query as attention multiplies it with keys: transformed, and rounded as they are.
void MakeQuery(const AttentionArgs& args, int64_t row, int64_t head, float* values);

// Rotates one head's sums back and writes them as the output wants them; `values`: [D],
// overwritten.
void WriteAttended(const AttentionArgs& args, int64_t row, int64_t head, float* values);

// The queries of one row as the index multiplies them with keys.
struct IndexQuery {
  int64_t heads;
  int64_t dim;
  const float* f32;      // [heads, dim] with fp32 keys, or
  const int8_t* int8;    // with int8 keys
  const float* factors;  // [heads] weights, with the scales of int8 queries
};
// In memory of the calling thread, until it makes those of another row.
IndexQuery MakeIndexQuery(const IndexArgs& args, int64_t row);

// The score of an index key, a cache row in the table's key format.
using ScoreKey = float (*)(const IndexQuery& query, const std::byte* key);
void ScoreKeys(const IndexArgs& args, ScoreKey score, const base::WorkerRank& worker);

}  // namespace fulgur::kernels::scalar
