#include <algorithm>
#include <array>
#include <cmath>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "parts.h"

namespace fulgur::bench_spec {
namespace {

constexpr int64_t kContext = 128;
constexpr int64_t kVocabulary = 8192;
constexpr int64_t kWindowTokens = 12;  // of each request

// Shares of rounds in which each of seven drafts stands, as reported for DeepSeek-V4-Flash with
// DSpark on Ascend: the golden values of vllm-ascend's tests, and those of a user.
struct Reported {
  std::string name;
  std::vector<double> rates;
};

std::vector<Reported> ReportedRates() {
  return {{"4.57", {0.88, 0.74, 0.58, 0.49, 0.40, 0.30, 0.18}},
          {"2.87", {0.739, 0.478, 0.261, 0.174, 0.130, 0.087, 0.043}}};
}

// Speed-ups that were published for 7 drafts on 16 Ascend dies (TP 4, DP 4): chat of 128 + 256
// tokens, summaries of 1024 + 128, a coding agent of 16384 + 4096.
struct PublishedRow {
  int64_t requests;
  std::array<double, 3> speed_ups;
};
constexpr PublishedRow kPublished[] = {{1, {1.96, 2.06, 2.91}},
                                       {4, {1.70, 1.36, 2.15}},
                                       {8, {1.42, 0.91, 2.13}},
                                       {16, {1.02, 0.62, 1.81}}};

// Bytes of weights that steps read.
class Bytes {
 public:
  explicit Bytes(const LoadedModel& model) : config_(model.config) {
    const model::Weights& weights = model.weights;
    main_ = {.rest = Size(weights.head) + Size(weights.head_hc.fn)};
    for (const model::Layer& layer : weights.layers) AddLayer(layer, main_);
    const model::DrafterWeights& drafter = weights.drafter;
    for (const model::Layer& layer : drafter.layers) AddLayer(layer, draft_);
    draft_.rest += Size(drafter.main_proj) + Size(weights.head);
    draft_.rest += static_cast<double>(drafter.markov_w2.bytes.size()) *
                   static_cast<double>(config_.dspark.block_size);
  }

  double Forward(double rows) const { return Of(main_, rows); }
  double Draft(double requests) const {
    return Of(draft_, requests * static_cast<double>(config_.dspark.block_size));
  }

 private:
  struct Parts {
    double rest = 0.0;     // read whole, by every step
    double experts = 0.0;  // all routed experts
  };

  static double Size(const kernels::PackedLinear& w) { return static_cast<double>(w.bytes.size()); }

  static double SizeOf(const model::Expert& e) { return Size(e.gate) + Size(e.up) + Size(e.down); }

  static void AddLayer(const model::Layer& layer, Parts& parts) {
    const model::Attention& a = layer.attention;
    parts.rest += Size(layer.attn_hc.fn) + Size(layer.ffn_hc.fn) + Size(a.wq_a) + Size(a.wq_b) +
                  Size(a.wkv) + Size(a.wo_b) + Size(layer.moe.router);
    for (const auto& group : a.wo_a) parts.rest += Size(group);
    parts.rest += Size(a.compressor.wkv) + Size(a.compressor.wgate) + Size(a.indexer.wq_b) +
                  Size(a.indexer.weights_proj) + Size(a.indexer.compressor.wkv) +
                  Size(a.indexer.compressor.wgate);
    for (const auto& expert : layer.moe.shared) parts.rest += SizeOf(expert);
    for (const auto& expert : layer.moe.experts) parts.experts += SizeOf(expert);
  }

  // Rows draw their experts independently; each that is drawn is read once.
  double Of(const Parts& parts, double rows) const {
    const double share =
        static_cast<double>(config_.experts_per_token) / static_cast<double>(config_.num_experts);
    return parts.rest + parts.experts * (1.0 - std::pow(1.0 - share, rows));
  }

  const model::ModelConfig config_;
  Parts main_;
  Parts draft_;
};

struct Cell {
  double fixed = 0.0;
  double adaptive = 0.0;
  double accept_length = 0.0;
};

class Curve {
 public:
  explicit Curve(const BenchOptions& options)
      : options_(options), rounds_(options.quick ? 2 : 5), warm_up_(options.quick ? 1 : 3) {}

  absl::Status Run() {
    const int64_t most = options_.quick ? 4 : kPublished[std::size(kPublished) - 1].requests;
    const ModelSource source = Toy(options_);
    const Shape shape = {
        .threads = options_.threads,
        .max_num_seqs = most,
        .max_model_len = kContext + kWindowTokens * (rounds_ + warm_up_ + 4) +
                         SaidBeforeAllHaveStarted(most, kContext, source.block_size),
        .thread_time = options_.thread_time};
    {
      ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(source, true, options_.threads));
      bytes_ = std::make_unique<Bytes>(model);
    }
    ASSIGN_OR_RETURN(arms_, ThreeArms::Create(source, {}, shape));
    PrintHead();
    for (const PublishedRow& row : kPublished) {
      if (row.requests <= most) RETURN_IF_ERROR(Row(row));
    }
    return absl::OkStatus();
  }

 private:
  static void PrintHead() {
    fmt::print(
        "\n### Published accept lengths on a larger model\n\n| requests | plain, tok/s | tokens "
        "per round | always 7 drafts / plain | adaptive / plain | same bytes per second: always 7 "
        "| published chat | summaries | coding |\n|---|---|---|---|---|---|---|---|---|\n");
  }

  absl::Status Row(const PublishedRow& row) {
    for (const Reported& reported : ReportedRates()) {
      double plain = 0.0;
      ASSIGN_OR_RETURN(const Cell cell, Measure(row.requests, reported, plain));
      fmt::print("| {} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n",
                 row.requests, plain, cell.accept_length, cell.fixed, cell.adaptive,
                 ByBytes(row.requests, cell.accept_length), row.speed_ups[0], row.speed_ups[1],
                 row.speed_ups[2]);
      std::fflush(stdout);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Cell> Measure(int64_t requests, const Reported& reported, double& plain) {
    const std::vector<Arm*> arms = {arms_.plain.get(), arms_.fixed.get(), arms_.adaptive.get()};
    for (Arm* arm : arms) {
      arm->decree()->SetRates(reported.rates);
      RETURN_IF_ERROR(arm->Begin(RandomPrompts(requests, kContext, kVocabulary)));
    }
    const auto before = arms_.fixed->Stats();
    ASSIGN_OR_RETURN(const auto windows,
                     TakeTurns(arms, kWindowTokens * requests, warm_up_, rounds_));
    plain = TokensPerSecond(windows[0]);
    for (Arm* arm : arms) RETURN_IF_ERROR(arm->End());
    return Cell{.fixed = SpeedUp(windows[1], windows[0]),
                .adaptive = SpeedUp(windows[2], windows[0]),
                .accept_length = Between(before, arms_.fixed->Stats()).accept_length};
  }

  // What would come of it if a step took the time of the weights that it reads.
  double ByBytes(int64_t requests, double accept_length) const {
    const auto count = static_cast<double>(requests);
    return accept_length * bytes_->Forward(count) /
           (bytes_->Forward(count * 8.0) + bytes_->Draft(count));
  }

  const BenchOptions& options_;
  const int rounds_;
  const int warm_up_;
  std::unique_ptr<Bytes> bytes_;
  ThreeArms arms_;
};

}  // namespace

absl::Status Published(const BenchOptions& options) { return Curve(options).Run(); }

}  // namespace fulgur::bench_spec
