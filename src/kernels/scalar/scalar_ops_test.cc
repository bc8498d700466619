// The scalar ops against small results worked out by hand or by an independent program.
#include "kernels/scalar/scalar_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/index_entries.h"
#include "kernels/packing.h"
#include "tensor/buffer.h"

namespace fulgur::kernels::scalar {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

const base::WorkerRank kAlone(0, 1, nullptr);

MATCHER_P(NearTo, tolerance, "") {
  return std::fabs(static_cast<float>(std::get<0>(arg)) - static_cast<float>(std::get<1>(arg))) <=
         tolerance;
}

// ---- hyper-connections: 4 streams of 4 channels, the unit matrix, so that y shows pre ----

class HyperConnection : public ::testing::Test {
 protected:
  HyperConnection() {
    for (int i = 0; i < 24; ++i) {
      base_[static_cast<size_t>(i)] = static_cast<float>(5 * i % 11) / 10.0F - 0.5F;
    }
    for (size_t i = 0; i < 4; ++i) streams_[5 * i] = 1.0F;
    partials_ = {0.5F, -1,   0.25F, 2, 1,     -0.5F, 0,  3,  -2,    0.5F,  -1.5F, 0, 1,
                 1.5F, 1.5F, 1,     0, -1.5F, 0.5F,  -2, -1, -0.5F, -0.5F, -1,    16};
    args_.streams = streams_.data();
    args_.rows = 1;
    args_.num_streams = 4;
    args_.hidden = 4;
    args_.partials = partials_.data();
    args_.base = base_;
    args_.scale = scale_;
    args_.sinkhorn_iters = 20;
    args_.hc_eps = 1e-6F;
    args_.norm_weight = ones_.data();
    args_.post_comb = post_comb_.data();
    args_.out.f32 = y_.data();
  }

  std::vector<float> Comb(int64_t begin, int64_t end) const {
    return {post_comb_.begin() + 4 + begin, post_comb_.begin() + 4 + end};
  }

  std::array<float, 24> base_;
  std::array<float, 3> scale_ = {1.5F, 0.75F, 1.25F};
  std::array<float, 16> streams_ = {};
  std::vector<float> partials_;
  std::array<float, 4> ones_ = {1, 1, 1, 1};
  std::array<float, 20> post_comb_ = {};
  std::array<float, 4> y_ = {};
  HcPreArgs args_;
};

TEST_F(HyperConnection, PreIsWhatCollapsesTheStreams) {
  HcPre(args_, kAlone);
  const std::vector<float> pre = {0.5621775F, 0.18242652F, 0.70578603F, 0.94784744F};
  double squares = 0;
  for (const float p : pre) squares += static_cast<double>(p) * p;
  std::vector<float> normed;
  for (const float p : pre) normed.push_back(p / static_cast<float>(std::sqrt(squares / 4)));
  EXPECT_THAT(y_, Pointwise(NearTo(1e-6F), normed));
}

TEST_F(HyperConnection, PostAndCombAfterTwentyIterations) {
  HcPre(args_, kAlone);
  const std::vector<float> post(post_comb_.begin(), post_comb_.begin() + 4);
  EXPECT_THAT(post, Pointwise(NearTo(1e-6F), {1.51902183F, 0.72016781F, 1.14888503F, 1.75089328F}));
  EXPECT_THAT(Comb(0, 16),
              Pointwise(NearTo(1e-6F), {0.08623287F, 0.41376707F, 0.08623236F, 0.41376671F,
                                        0.22901599F, 0.27098356F, 0.22901593F, 0.27098352F,
                                        0.45573414F, 0.04426481F, 0.45573479F, 0.04426526F,
                                        0.22901599F, 0.27098356F, 0.22901593F, 0.27098352F}));
}

TEST_F(HyperConnection, OneIterationIsSoftmaxAndOneColumnStep) {
  args_.sinkhorn_iters = 1;
  HcPre(args_, kAlone);
  EXPECT_THAT(Comb(0, 4),
              Pointwise(NearTo(1e-6F), {0.07261229F, 0.38730061F, 0.07261189F, 0.38729996F}));
}

// The sum runs over the first index of comb: the transposed matrix gives other numbers.
TEST_F(HyperConnection, PostMixesColumnsOfComb) {
  HcPre(args_, kAlone);
  std::array<float, 4> streams = {1, 2, 3, 4};
  const float o = 10;
  HcPostArgs post;
  post.streams = streams.data();
  post.rows = 1;
  post.num_streams = 4;
  post.hidden = 1;
  post.o = &o;
  post.post_comb = post_comb_.data();
  HcPost(post, kAlone);
  EXPECT_THAT(streams,
              Pointwise(NearTo(2e-5F), {18.01774959F, 9.37414093F, 14.31638262F, 19.68139643F}));
}

// ---- rows ----

TEST(NormRows, UnitWeight) {
  const std::array<float, 4> x = {1, 2, 3, 4};
  const std::array<float, 4> ones = {1, 1, 1, 1};
  std::array<float, 4> y;
  NormRowsJob job;
  job.x = x.data();
  job.rows = 1;
  job.cols = 4;
  job.weight = ones.data();
  job.eps = 1e-6F;
  job.out.f32 = y.data();
  NormRows({&job, 1}, kAlone);
  EXPECT_THAT(y, Pointwise(NearTo(1e-6F), {0.36514835F, 0.73029669F, 1.09544504F, 1.46059339F}));
}

TEST(HeadRows, HadamardIsInNaturalOrder) {
  std::array<float, 128> x = {};
  x[5] = std::sqrt(128.0F);
  std::array<float, 128> y;
  HeadRowsJob job;
  job.x = x.data();
  job.rows = 1;
  job.heads = 1;
  job.dim = 128;
  job.transform.hadamard = true;
  job.out.f32 = y.data();
  HeadRows({&job, 1}, kAlone);
  const std::vector<float> first(y.begin(), y.begin() + 16);
  EXPECT_THAT(first,
              Pointwise(NearTo(1e-6F), {1, -1, 1, -1, -1, 1, -1, 1, 1, -1, 1, -1, -1, 1, -1, 1}));
}

TEST(WriteRings, KeepsTheLastRowsByPosition) {
  std::array<int32_t, 4> ring = {-1, -1, -1, -1};
  const std::array<int32_t, 7> rows = {90, 10, 11, 12, 13, 14, 15};
  const RingSequence sequence = {
      {.first_position = 10, .first_row = 1, .num_rows = 6},
      {reinterpret_cast<std::byte*>(ring.data()), 4, static_cast<int64_t>(sizeof(int32_t))}};
  const RingWriteJob job = {{&sequence, 1}, reinterpret_cast<const std::byte*>(rows.data())};
  WriteRings({&job, 1}, kAlone);
  EXPECT_THAT(ring, ElementsAre(12, 13, 14, 15));
}

// ---- compression: entries of blocks of 4 that overlap, 2 channels ----

std::array<float, 6> OverlappingEntries(bool gated) {
  constexpr int kTokens = 12;
  std::vector<float> rows;
  for (int j = 0; j < kTokens; ++j) {
    const auto t = static_cast<float>(j);
    rows.insert(rows.end(), {t, 10 + t, 100 + t, 110 + t});
    const float gate = gated ? static_cast<float>(j % 4) : 0.0F;
    rows.insert(rows.end(), {0.1F * gate, 0.2F * gate, 0.3F * gate, -0.1F * gate});
  }
  const std::array<float, 16> ape = {};
  const std::array<float, 2> ones = {1, 1};
  std::array<float, 6> entries = {};
  const int32_t page = 0;
  CompressSequence sequence;
  sequence.range = {0, 0, kTokens};
  sequence.entries = {reinterpret_cast<std::byte*>(entries.data()), 0, &page, 64, 8};
  CompressArgs args;
  args.sequences = {&sequence, 1};
  args.rows = rows.data();
  args.ratio = 4;
  args.dim = 2;
  args.overlap = true;
  args.ape = ape.data();
  args.norm_weight = ones.data();
  args.format = RowFormat::kF32;
  Compress(args, kAlone);
  return entries;
}

// Entries are normalised: compare with the pooled values divided by their rms.
void ExpectEntries(const std::array<float, 6>& entries, const std::array<double, 6>& pooled) {
  for (size_t b = 0; b < 6; b += 2) {
    const double rms = std::sqrt((pooled[b] * pooled[b] + pooled[b + 1] * pooled[b + 1]) / 2.0);
    EXPECT_NEAR(entries[b], pooled[b] / rms, 1e-6) << b;
    EXPECT_NEAR(entries[b + 1], pooled[b + 1] / rms, 1e-6) << b;
  }
}

TEST(Compress, OverlappingBlocksWithoutGates) {
  ExpectEntries(OverlappingEntries(false), {101.5, 111.5, 53.5, 63.5, 57.5, 67.5});
}

TEST(Compress, GatesWeighTokensPerChannel) {
  const std::array<float, 6> entries = OverlappingEntries(true);
  ExpectEntries({entries[0], entries[1], entries[2], entries[3], entries[2], entries[3]},
                {101.86575513, 111.37535282, 62.75681153, 51.63816433, 62.75681153, 51.63816433});
}

// ---- attention and index ----

// Keys are unit vectors, so that the output shows the weights. Queries are normalised, which the
// scale undoes.
TEST(SparseAttention, SinkTakesItsShareOfTheSoftmax) {
  const std::array<float, 12> q = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0.5F, 0};
  const std::array<float, 12> keys = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
  const float sink = 0.7F;
  std::array<float, 12> out;
  AttentionSequence sequence;
  sequence.range = {0, 0, 3};
  AttentionArgs args;
  args.sequences = {&sequence, 1};
  args.row_end = 3;
  args.q = q.data();
  args.query.normalize = true;
  args.new_rows = reinterpret_cast<const std::byte*>(keys.data());
  args.format = RowFormat::kF32;
  args.heads = 1;
  args.dim = 4;
  args.window = 3;
  args.sink = &sink;
  args.scale = std::sqrt(5.25F / 4);
  args.out_f32 = out.data();
  SparseAttention(args, kAlone);
  const std::vector<float> last(out.begin() + 8, out.end());
  EXPECT_THAT(last, Pointwise(NearTo(1e-6F), {0.19740878F, 0.53661271F, 0.11973448F, 0.0F}));
}

TEST(SelectEntries, TakesTheBestAndTheLowerOfEquals) {
  std::array<float, 6> scores = {1, 3, 2, 3, 2, 0};
  IndexArgs args;
  args.row_begin = 23;
  args.row_end = 24;
  args.topk = 3;
  args.scores = scores.data();
  args.scores_stride = 6;
  const int32_t* selected = SelectEntries(args, 23, 6);
  EXPECT_THAT(std::vector<int32_t>(selected, selected + 3), ElementsAre(1, 2, 3));
}

// ---- experts ----

TEST(Route, ScoresAreTheRootOfSoftplus) {
  const std::array<float, 7> logits = {-30, -5, -1, 0, 1, 5, 25};
  std::array<int32_t, 7> table;
  std::iota(table.begin(), table.end(), 0);
  const int32_t token = 0;
  std::array<int32_t, 7> experts;
  std::array<float, 7> weights;
  RouteArgs args;
  args.logits = logits.data();
  args.rows = 1;
  args.num_experts = 7;
  args.top_k = 7;
  args.token_experts = table.data();
  args.tokens = &token;
  args.normalize = false;
  args.experts = experts.data();
  args.weights = weights.data();
  Route(args, kAlone);
  EXPECT_THAT(weights, Pointwise(NearTo(1e-6F), {3.1e-7F, 0.08194723F, 0.55969785F, 0.83255461F,
                                                 1.1459763F, 2.23756907F, 5.0F}));
}

// The bias decides who is chosen, never with what weight; equals go to the lower index.
TEST(Route, BiasOnlySelects) {
  const std::array<float, 4> logits = {0, 0, 0, 2};
  const std::array<float, 4> bias = {0, 0.1F, 0, -9};
  std::array<int32_t, 2> experts;
  std::array<float, 2> weights;
  RouteArgs args;
  args.logits = logits.data();
  args.rows = 1;
  args.num_experts = 4;
  args.top_k = 2;
  args.bias = bias.data();
  args.scale = 1.5F;
  args.experts = experts.data();
  args.weights = weights.data();
  Route(args, kAlone);
  EXPECT_THAT(experts, ElementsAre(1, 0));
  EXPECT_THAT(weights, ElementsAre(FloatNear(0.75F, 1e-6F), FloatNear(0.75F, 1e-6F)));
}

// A 1 x 1 weight, packed.
struct Scalar {
  explicit Scalar(float weight) : value(weight) {
    LinearSource source;
    source.out = 1;
    source.in = 1;
    source.weight = reinterpret_cast<const std::byte*>(&value);
    bytes = tensor::Buffer<std::byte>(PackedBytes(source, WeightFormat::kF32));
    Pack(source, WeightFormat::kF32, bytes.span(), kAlone);
    linear = {WeightFormat::kF32, 1, 1, bytes.span()};
  }

  float value;
  tensor::Buffer<std::byte> bytes;
  PackedLinear linear;
};

float SwiGlu(float gate_value, float up_value) {
  const Scalar gate(gate_value);
  const Scalar up(up_value);
  const Scalar down(1);
  const float x = 1;
  const int32_t row = 0;
  const float weight = 1;
  float h = 0;
  const ExpertTask task = {&gate.linear, &up.linear, &down.linear, 0, 1};
  ExpertArgs args;
  args.tasks = {&task, 1};
  args.slot_row = &row;
  args.slot_weight = &weight;
  args.x.rows = 1;
  args.x.cols = 1;
  args.x.f32 = &x;
  args.swiglu_limit = 10;
  args.expert_size = 1;
  args.h = &h;
  args.rows = 1;
  ExpertGateUp(args, kAlone);
  return h;
}

TEST(ExpertGateUp, ClampsTheGateAboveAndUpOnBothSides) {
  EXPECT_NEAR(SwiGlu(12, -11), -99.99546021, 1e-5);
  EXPECT_NEAR(SwiGlu(-30, 3), -8.4219e-12, 1e-15);
}

}  // namespace
}  // namespace fulgur::kernels::scalar
