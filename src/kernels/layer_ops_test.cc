// The stages that are not matrix products, for every table that this machine runs, against the
// scalar table; and independent of the workers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/op_table.h"
#include "kernels/random_weights.h"
#include "tensor/buffer.h"

namespace fulgur::kernels {
namespace {

const OpTable& Scalar() { return *SupportedOps(base::DetectMachine()).front(); }

void RunAll(int workers, const std::function<void(const base::WorkerRank&)>& op) {
  for (int rank = 0; rank < workers; ++rank) op(base::WorkerRank(rank, workers, nullptr));
}

std::vector<float> Random(int64_t n, float scale, uint32_t seed) {
  std::mt19937 random(seed);
  return RandomFloats(n, scale, random);
}

std::vector<float> Rotations(int64_t rows, int64_t rope_dim) {
  std::vector<float> table(static_cast<size_t>(rows * rope_dim));
  for (size_t i = 0; i < table.size(); i += 2) {
    table[i] = std::cos(static_cast<float>(i));
    table[i + 1] = std::sin(static_cast<float>(i));
  }
  return table;
}

template <typename T>
std::vector<float> AsFloats(const std::vector<T>& values) {
  std::vector<float> floats;
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, tensor::BFloat16>) {
      floats.push_back(tensor::ToFloat(value));
    } else {
      floats.push_back(static_cast<float>(value));
    }
  }
  return floats;
}

void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected,
                 float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = 0.0F;
  for (float value : expected) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << "element " << i;
  }
}

// Rows in every representation.
struct Outputs {
  std::vector<float> f32;
  std::vector<tensor::BFloat16> bf16;
  std::vector<int8_t> int8;
  std::vector<float> scale;

  Outputs(int64_t rows, int64_t cols)
      : f32(static_cast<size_t>(rows * cols)),
        bf16(static_cast<size_t>(rows * cols)),
        int8(static_cast<size_t>(rows * cols)),
        scale(static_cast<size_t>(rows)) {}
  RowsOut view() { return {f32.data(), bf16.data(), int8.data(), scale.data()}; }
};

void ExpectOutputsClose(const Outputs& actual, const Outputs& expected) {
  ExpectClose(actual.f32, expected.f32, 2e-6F);
  ExpectClose(AsFloats(actual.bf16), AsFloats(expected.bf16), 4e-3F);
  ExpectClose(actual.scale, expected.scale, 1e-5F);
  for (size_t i = 0; i < actual.int8.size(); ++i) {
    ASSERT_NEAR(actual.int8[i], expected.int8[i], 1) << "element " << i;
  }
}

bool SameBits(const Outputs& a, const Outputs& b) {
  return std::memcmp(a.f32.data(), b.f32.data(), a.f32.size() * 4) == 0 &&
         std::memcmp(a.bf16.data(), b.bf16.data(), a.bf16.size() * 2) == 0 && a.int8 == b.int8 &&
         std::memcmp(a.scale.data(), b.scale.data(), a.scale.size() * 4) == 0;
}

class LayerOpsTest : public testing::TestWithParam<const OpTable*> {
 protected:
  const OpTable& ops() const { return *GetParam(); }
};

TEST_P(LayerOpsTest, NormRows) {
  for (int64_t cols : {1, 16, 96, 100, 1024}) {
    const auto x = Random(5 * cols, 3.0F, 1);
    const auto weight = Random(cols, 1.0F, 2);
    const auto run = [&](const OpTable& table, const float* w, int workers) {
      Outputs out(5, cols);
      const NormRowsJob job{
          .x = x.data(), .rows = 5, .cols = cols, .weight = w, .eps = 1e-6F, .out = out.view()};
      RunAll(workers, [&](const auto& worker) { table.norm_rows({&job, 1}, worker); });
      return out;
    };
    ExpectOutputsClose(run(ops(), weight.data(), 1), run(Scalar(), weight.data(), 1));
    EXPECT_TRUE(SameBits(run(ops(), weight.data(), 3), run(ops(), weight.data(), 1)));
    EXPECT_TRUE(SameBits(run(ops(), nullptr, 1), run(Scalar(), nullptr, 1)));  // conversion only
  }
}

TEST_P(LayerOpsTest, HeadRows) {
  for (bool hadamard : {false, true}) {
    for (int64_t dim : {64, 128, 512}) {
      constexpr int64_t kRows = 3, kHeads = 5;
      const auto x = Random(kRows * kHeads * dim, 2.0F, 1);
      const auto weight = Random(dim, 1.0F, 2);
      const auto rope = Rotations(kRows, 32);
      const auto run = [&](const OpTable& table, int workers) {
        Outputs out(kRows * kHeads, dim);
        HeadRowsJob job{.x = x.data(), .rows = kRows, .heads = kHeads, .dim = dim};
        job.transform.normalize = !hadamard;
        job.transform.weight = weight.data();
        job.transform.eps = 1e-6F;
        job.transform.rope = rope.data();
        job.transform.rope_dim = 32;
        job.transform.hadamard = hadamard;
        job.out = out.view();
        RunAll(workers, [&](const auto& worker) { table.head_rows({&job, 1}, worker); });
        return out;
      };
      ExpectOutputsClose(run(ops(), 1), run(Scalar(), 1));
      EXPECT_TRUE(SameBits(run(ops(), 4), run(ops(), 1)));
    }
  }
}

// One sub-layer's entry: streams after hc_post, partials, then what hc_pre makes of them.
struct HyperConnection {
  int64_t rows, streams, hidden;
  std::vector<float> x, o, post_comb, partials, base, scale, norm;
  RandomWeight fn;
  Outputs out;

  HyperConnection(int64_t t, int64_t s, int64_t h, bool head)
      : rows(t),
        streams(s),
        hidden(h),
        x(Random(t * s * h, 1.0F, 1)),
        o(Random(t * h, 1.0F, 2)),
        post_comb(Random(t * (s + s * s), 0.5F, 3)),
        base(Random(head ? s : s * (2 + s), 0.5F, 4)),
        scale(Random(head ? 1 : 3, 0.5F, 5)),
        norm(Random(h, 1.0F, 6)),
        fn(MakeRandomWeight(WeightFormat::kF32, head ? s : s * (2 + s), s * h, 7)),
        out(t, h) {
    partials.resize(static_cast<size_t>(t * HcSlices(h) * (fn.packed.out + 1)));
  }

  void Run(const OpTable& ops, int workers, bool head) {
    HcPostArgs post{.streams = x.data(), .rows = rows, .num_streams = streams, .hidden = hidden};
    post.o = o.data();
    post.post_comb = post_comb.data();
    post.fn = &fn.packed;
    post.partials = partials.data();
    RunAll(workers, [&](const auto& worker) { ops.hc_post(post, worker); });
    HcPreArgs pre{.streams = x.data(), .rows = rows, .num_streams = streams, .hidden = hidden};
    pre.partials = partials.data();
    pre.base = base;
    pre.scale = scale;
    pre.sinkhorn_iters = 20;
    pre.hc_eps = pre.rms_eps = 1e-6F;
    pre.norm_weight = norm.data();
    pre.post_comb = head ? nullptr : post_comb.data();
    pre.out = out.view();
    RunAll(workers, [&](const auto& worker) { ops.hc_pre(pre, worker); });
  }
};

TEST_P(LayerOpsTest, HyperConnections) {
  for (bool head : {false, true}) {
    for (int64_t streams : {4, 2}) {
      for (int64_t hidden : {64, 256, 600}) {
        HyperConnection expected(7, streams, hidden, head);
        HyperConnection alone(7, streams, hidden, head);
        HyperConnection shared(7, streams, hidden, head);
        expected.Run(Scalar(), 1, head);
        alone.Run(ops(), 1, head);
        shared.Run(ops(), 3, head);
        ExpectClose(alone.x, expected.x, 1e-6F);
        ExpectClose(alone.partials, expected.partials, 4e-6F);
        ExpectClose(alone.post_comb, expected.post_comb, 1e-5F);
        ExpectOutputsClose(alone.out, expected.out);
        EXPECT_EQ(shared.post_comb, alone.post_comb);
        EXPECT_TRUE(SameBits(shared.out, alone.out));
      }
    }
  }
}

// A batch of one row equals that row of a larger batch.
TEST_P(LayerOpsTest, HyperConnectionRowsAreIndependent) {
  HyperConnection all(8, 4, 512, false);
  std::vector<HyperConnection> single;
  for (int64_t t = 0; t < 8; ++t) {
    HyperConnection& one = single.emplace_back(1, 4, 512, false);
    std::copy_n(all.x.begin() + t * 4 * 512, 4 * 512, one.x.begin());
    std::copy_n(all.o.begin() + t * 512, 512, one.o.begin());
    std::copy_n(all.post_comb.begin() + t * 20, 20, one.post_comb.begin());
  }
  all.Run(ops(), 1, false);
  for (size_t t = 0; t < 8; ++t) {
    single[t].Run(ops(), 1, false);
    ASSERT_EQ(std::memcmp(single[t].out.f32.data(), &all.out.f32[t * 512], 512 * 4), 0) << t;
    ASSERT_EQ(std::memcmp(single[t].post_comb.data(), &all.post_comb[t * 20], 20 * 4), 0) << t;
  }
}

// Two sequences, one in the middle of its second page of a ring, one new.
struct Cache {
  static constexpr int64_t kRingRows = 300, kRowsPerPage = 16;
  int64_t row_bytes;
  std::vector<std::byte> ring;
  std::vector<std::byte> pool;
  std::vector<int32_t> pages;

  Cache(int64_t ring_row_bytes, int64_t page_row_bytes)
      : row_bytes(ring_row_bytes),
        ring(static_cast<size_t>(kRingRows * ring_row_bytes)),
        pool(static_cast<size_t>(80 * kRowsPerPage * page_row_bytes)),
        pages(40) {
    for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(79 - 2 * i);
  }
  RingRows Ring() { return {ring.data(), kRingRows, row_bytes}; }
  PagedRows Pages(int64_t page_row_bytes, int64_t shift) {
    return {pool.data(), kRowsPerPage * page_row_bytes, pages.data() + shift, kRowsPerPage,
            page_row_bytes};
  }
};

struct CompressCase {
  int64_t ratio;
  bool overlap;
  int64_t dim;
  RowFormat format;
};

TEST_P(LayerOpsTest, Compress) {
  for (const CompressCase& c : {CompressCase{4, true, 128, RowFormat::kInt8Scaled},
                                CompressCase{4, true, 512, RowFormat::kBf16},
                                CompressCase{128, false, 64, RowFormat::kBf16},
                                CompressCase{4, true, 64, RowFormat::kF32}}) {
    constexpr int64_t kRows = 9 + 130;
    const int64_t channels = c.overlap ? 2 * c.dim : c.dim;
    const int64_t bytes = RowBytes(c.format, c.dim);
    const auto rows = Random(kRows * 2 * channels, 1.0F, 1);
    const auto ape = Random(c.ratio * channels, 1.0F, 2);
    const auto norm = Random(c.dim, 1.0F, 3);
    const std::vector<float> freqs = {1.0F, 0.5F, 0.1F, 0.01F, 0.003F, 0.0005F, 1e-4F, 1e-5F};
    const auto run = [&](const OpTable& table, int workers) {
      Cache cache(2 * channels * 4, bytes);
      const auto earlier = Random(Cache::kRingRows * 2 * channels, 1.0F, 4);
      std::memcpy(cache.ring.data(), earlier.data(), earlier.size() * 4);
      const CompressSequence sequences[] = {{{250, 0, 9}, cache.Ring(), cache.Pages(bytes, 0)},
                                            {{0, 9, 130}, cache.Ring(), cache.Pages(bytes, 10)}};
      CompressArgs args{.sequences = sequences, .rows = rows.data(), .ratio = c.ratio};
      args.dim = c.dim;
      args.overlap = c.overlap;
      args.ape = ape.data();
      args.norm_weight = norm.data();
      args.eps = 1e-6F;
      args.rope_freqs = freqs.data();
      args.rope_dim = 16;
      args.hadamard = c.format == RowFormat::kInt8Scaled;
      args.format = c.format;
      RunAll(workers, [&](const auto& worker) { table.compress(args, worker); });
      return cache.pool;
    };
    const auto expected = run(Scalar(), 1);
    const auto actual = run(ops(), 1);
    EXPECT_EQ(run(ops(), 3), actual);
    for (size_t row = 0; row + 1 < expected.size() / static_cast<size_t>(bytes); ++row) {
      const std::byte* a = actual.data() + static_cast<int64_t>(row) * bytes;
      const std::byte* e = expected.data() + static_cast<int64_t>(row) * bytes;
      for (int64_t d = 0; d < c.dim; ++d) {
        if (c.format == RowFormat::kInt8Scaled) {
          ASSERT_NEAR(static_cast<int8_t>(a[d]), static_cast<int8_t>(e[d]), 1);
        } else if (c.format == RowFormat::kBf16) {
          const float ae = tensor::ToFloat(reinterpret_cast<const tensor::BFloat16*>(a)[d]);
          const float ee = tensor::ToFloat(reinterpret_cast<const tensor::BFloat16*>(e)[d]);
          ASSERT_NEAR(ae, ee, 0.01F * std::fabs(ee) + 1e-6F);
        } else {
          ASSERT_NEAR(reinterpret_cast<const float*>(a)[d], reinterpret_cast<const float*>(e)[d],
                      2e-5F);
        }
      }
    }
  }
}

TEST_P(LayerOpsTest, IndexScores) {
  for (int64_t heads : {16, 64, 5, 80}) {
    constexpr int64_t kDim = 128, kRows = 6, kTopk = 40, kStride = 160;
    const int64_t bytes = RowBytes(RowFormat::kInt8Scaled, kDim);
    Cache cache(4, bytes);
    for (int64_t row = 0; row < 80 * Cache::kRowsPerPage; ++row) {
      const auto key = Random(kDim, 1.0F, static_cast<uint32_t>(row));
      std::byte* at = cache.pool.data() + row * bytes;
      const float scale = QuantizeInt8(key.data(), kDim, reinterpret_cast<int8_t*>(at));
      std::memcpy(at + kDim, &scale, 4);
    }
    const auto q = Random(kRows * heads * kDim, 1.0F, 8);
    const auto rope = Rotations(kRows, 32);
    const auto weights = Random(kRows * heads, 1.0F, 9);
    const IndexSequence sequences[] = {{{629, 0, 4}, cache.Pages(bytes, 0)},
                                       {{150, 4, 2}, cache.Pages(bytes, 3)}};
    const auto run = [&](const OpTable& table, int workers, bool transformed) {
      std::vector<float> scores(kRows * kStride, 0.0F);
      IndexArgs args{.sequences = sequences, .row_begin = 0, .row_end = kRows, .q = q.data()};
      args.query.rope = rope.data();
      args.query.rope_dim = transformed ? 32 : 0;
      args.query.hadamard = transformed;
      args.weights = weights.data();
      args.weight_scale = 0.01F;
      args.heads = heads;
      args.dim = kDim;
      args.ratio = 4;
      args.topk = kTopk;
      args.scores = scores.data();
      args.scores_stride = kStride;
      RunAll(workers, [&](const auto& worker) { table.index_scores(args, worker); });
      return scores;
    };
    ExpectClose(run(ops(), 1, false), run(Scalar(), 1, false), 2e-6F);
    // A transformed value on the edge may be rounded to the next integer.
    const auto actual = run(ops(), 1, true);
    ExpectClose(actual, run(Scalar(), 1, true), 1e-3F);
    EXPECT_EQ(run(ops(), 3, true), actual);
  }
}

TEST_P(LayerOpsTest, Route) {
  constexpr int64_t kRows = 5, kExperts = 67, kTopk = 6;
  const auto logits = Random(kRows * kExperts, 4.0F, 1);
  const auto bias = Random(kExperts, 0.1F, 2);
  std::vector<int32_t> table(10 * kTopk);
  std::iota(table.begin(), table.end(), 1);
  const std::vector<int32_t> tokens = {3, 0, 9, 9, 1};
  for (bool hashed : {false, true}) {
    const auto run = [&](const OpTable& ops, std::vector<float>& weights) {
      std::vector<int32_t> experts(kRows * kTopk);
      weights.resize(kRows * kTopk);
      RouteArgs args{.logits = logits.data(), .rows = kRows, .num_experts = kExperts};
      args.top_k = kTopk;
      args.bias = hashed ? nullptr : bias.data();
      args.token_experts = hashed ? table.data() : nullptr;
      args.tokens = tokens.data();
      args.scale = 1.5F;
      args.experts = experts.data();
      args.weights = weights.data();
      RunAll(2, [&](const auto& worker) { ops.route(args, worker); });
      return experts;
    };
    std::vector<float> expected, actual;
    EXPECT_EQ(run(ops(), actual), run(Scalar(), expected));
    ExpectClose(actual, expected, 1e-6F);
  }
}

struct AttentionShape {
  int64_t heads, dim, window, ratio, topk;
};

// Queries and keys of two sequences: one in mid-life, one new.
struct AttentionCase {
  static constexpr int64_t kRows = 75;
  static constexpr int64_t kMaxEntries = 132;  // that a row sees
  AttentionShape shape;
  Cache cache;
  std::vector<float> q;
  std::vector<tensor::BFloat16> fresh;
  std::vector<float> sink, rope, scores;

  explicit AttentionCase(const AttentionShape& s)
      : shape(s),
        cache(2 * s.dim, 2 * s.dim),
        q(Random(kRows * s.heads * s.dim, 1.5F, 1)),
        fresh(Bf16(kRows * s.dim, 1.0F, 2)),
        sink(Random(s.heads, 1.0F, 3)),
        rope(Rotations(kRows, 32)),
        scores(Random(kRows * kMaxEntries, 1.0F, 6)) {
    const auto old = Bf16(Cache::kRingRows * s.dim, 1.0F, 4);
    std::memcpy(cache.ring.data(), old.data(), cache.ring.size());
    const auto entries = Bf16(80 * Cache::kRowsPerPage * s.dim, 1.0F, 5);
    std::memcpy(cache.pool.data(), entries.data(), cache.pool.size());
  }

  static std::vector<tensor::BFloat16> Bf16(int64_t n, float scale, uint32_t seed) {
    std::vector<tensor::BFloat16> values;
    for (float value : Random(n, scale, seed)) values.push_back(tensor::ToBFloat16(value));
    return values;
  }

  // Workers one after the other, or at the same time.
  std::vector<float> Run(const OpTable& ops, int workers, bool together = false) {
    std::vector<float> out(static_cast<size_t>(kRows * shape.heads * shape.dim), NAN);
    const int64_t groups = SharedRows::HeadGroups(shape.heads);
    tensor::Buffer<float> states(workers * kMaxKeyParts * groups *
                                 SharedRows::StateFloats(shape.dim));
    std::vector<int32_t> finished(static_cast<size_t>(workers * groups), 0);
    const AttentionSequence sequences[] = {
        {{517, 0, 5}, cache.Ring(), cache.Pages(2 * shape.dim, 0)},
        {{0, 5, 70}, cache.Ring(), cache.Pages(2 * shape.dim, 20)}};
    IndexArgs index{.row_begin = 0, .row_end = kRows, .ratio = shape.ratio, .topk = shape.topk};
    index.scores = scores.data();
    index.scores_stride = kMaxEntries;
    AttentionArgs args{.sequences = sequences, .row_begin = 0, .row_end = kRows, .q = q.data()};
    args.query.normalize = true;
    args.query.eps = 1e-6F;
    args.query.rope = rope.data();
    args.query.rope_dim = 32;
    args.new_rows = reinterpret_cast<const std::byte*>(fresh.data());
    args.heads = shape.heads;
    args.dim = shape.dim;
    args.window = shape.window;
    args.ratio = shape.ratio;
    args.index = shape.topk > 0 ? &index : nullptr;
    args.sink = sink.data();
    args.scale = 1.0F / std::sqrt(static_cast<float>(shape.dim));
    args.out_f32 = out.data();
    args.shared = {states.data(), finished.data()};
    const auto op = [&](const base::WorkerRank& worker) { ops.sparse_attention(args, worker); };
    if (together) {
      base::WorkerTeam(workers).Run(op);
    } else {
      RunAll(workers, op);
    }
    EXPECT_EQ(std::count(finished.begin(), finished.end(), 0), workers * groups);
    return out;
  }
};

TEST_P(LayerOpsTest, SparseAttention) {
  for (const AttentionShape& shape :
       {AttentionShape{16, 512, 128, 0, 0}, AttentionShape{8, 128, 16, 4, 0},
        AttentionShape{33, 96, 64, 4, 10}, AttentionShape{64, 64, 128, 128, 0},
        AttentionShape{4, 48, 16, 4, 0}, AttentionShape{20, 64, 256, 4, 0}}) {
    AttentionCase attention(shape);
    const auto actual = attention.Run(ops(), 1);
    ExpectClose(actual, attention.Run(Scalar(), 1), 4e-3F);  // softmax weights in bf16
    // Of 100 workers, several share each row.
    for (int workers : {2, 5, 100}) {
      const auto shared = attention.Run(ops(), workers, workers < 100);
      ASSERT_EQ(std::memcmp(shared.data(), actual.data(), shared.size() * 4), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, LayerOpsTest,
                         testing::ValuesIn(SupportedOps(base::DetectMachine())),
                         [](const auto& info) {
                           std::string name(info.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace fulgur::kernels
