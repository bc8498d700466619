// Whole steps of a checkpoint: prompt and decode speed, where the time goes, and the share of the
// memory bandwidth that decoding reaches.
//
// Beside every few decoded tokens the same worker threads read as many bytes as a token's active
// weights take, so the ratio means something on a shared machine too. Times are in wall clock and,
// where it says so, in time of the first worker's thread.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/machine.h"
#include "base/status_macros.h"
#include "fmt/format.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "model/weight_loader.h"
#include "probes.h"
#include "timed_ops.h"

namespace fulgur::bench_kernels {
namespace {

struct Options {
  std::string folder;
  int threads = 1;
  int64_t prompt = 512;
  int64_t chunk = 512;
  int64_t decode = 64;
  int64_t sequences = 1;
  int rounds = 3;
  bool profile = false;
  kernels::OpChoice ops = kernels::OpChoice::kAuto;
};

double WallNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size()) / 2,
                   values.end());
  return values[values.size() / 2];
}

// Bytes of weights that one token reads: everything but the experts that are not chosen.
int64_t ActiveBytes(const model::Weights& weights, const model::ModelConfig& config) {
  const auto size = [](const kernels::PackedLinear& w) {
    return static_cast<int64_t>(w.bytes.size());
  };
  int64_t total = size(weights.head) + size(weights.head_hc.fn);
  for (const model::Layer& layer : weights.layers) {
    const model::Attention& a = layer.attention;
    total += size(layer.attn_hc.fn) + size(layer.ffn_hc.fn) + size(a.wq_a) + size(a.wq_b);
    total += size(a.wkv) + size(a.wo_b) + size(a.compressor.wkv) + size(a.compressor.wgate);
    for (const auto& group : a.wo_a) total += size(group);
    total += size(a.indexer.weights_proj) + size(a.indexer.compressor.wkv);
    total += size(a.indexer.compressor.wgate) + size(layer.moe.router);
    for (const auto& e : layer.moe.shared) total += size(e.gate) + size(e.up) + size(e.down);
    const auto& e = layer.moe.experts.front();
    total += config.experts_per_token * (size(e.gate) + size(e.up) + size(e.down));
  }
  return total;
}

class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Create(const Options& options) {
    ASSIGN_OR_RETURN(const model::Checkpoint checkpoint, model::Checkpoint::Open(options.folder));
    model::LoadOptions load;
    load.num_threads = 2;
    ASSIGN_OR_RETURN(model::Weights weights, model::LoadWeights(checkpoint, load));
    auto bench = std::make_unique<Bench>(options, checkpoint.config());
    bench->active_bytes_ = ActiveBytes(weights, checkpoint.config());
    RETURN_IF_ERROR(bench->MakeModel(std::move(weights)));
    return bench;
  }

  Bench(const Options& options, const model::ModelConfig& config)
      : options_(options), config_(config), team_(options.threads), probe_data_(512 << 20) {
    std::mt19937 random(7);
    for (int64_t i = 0; i < options.prompt + options.decode; ++i) {
      tokens_.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(config.vocab_size)));
    }
  }

  void Run() {
    std::vector<double> prompt, decode, share, thread_share;
    for (int round = 0; round <= options_.rounds; ++round) {
      const double prompt_seconds = RunPrompt();
      const Decoded d = RunDecode();
      if (round == 0) {  // page faults
        ResetProfile();
        continue;
      }
      prompt.push_back(static_cast<double>(options_.prompt * options_.sequences) / prompt_seconds);
      decode.push_back(d.tokens_per_second);
      share.push_back(d.share);
      thread_share.push_back(d.thread_share);
    }
    fmt::print("prompt {:.1f} tok/s, decode {:.1f} tok/s; one token's {:.0f} MB: {:.1f} % of the ",
               Median(prompt), Median(decode), static_cast<double>(active_bytes_) * 1e-6,
               100.0 * Median(share));
    fmt::print("read bandwidth ({:.1f} % in time of the thread)\n", 100.0 * Median(thread_share));
  }

 private:
  struct Decoded {
    double tokens_per_second = 0.0, share = 0.0, thread_share = 0.0;
  };

  absl::Status MakeModel(model::Weights weights) {
    const base::Machine machine = base::DetectMachine();
    const kernels::OpTable& ops = kernels::SelectOps(machine, options_.ops);
    const int64_t position = options_.prompt + options_.decode + 1;
    const int64_t pages = kv::Layout::PagesFor(position);
    const kv::Layout layout = model::CacheLayout(config_, model::Precision::kNative, 0);
    ASSIGN_OR_RETURN(auto store,
                     kv::Store::Create(layout, pages * options_.sequences, options_.sequences));
    store_ = std::make_unique<kv::Store>(std::move(store));
    for (int64_t i = 0; i < pages * options_.sequences; ++i) {
      pages_.push_back(static_cast<model::PageId>(i));
    }
    const model::StepLimits limits = {.max_tokens = std::max(options_.chunk, options_.sequences),
                                      .max_sequences = options_.sequences,
                                      .max_logit_rows = options_.sequences,
                                      .max_position = position};
    logits_.resize(static_cast<size_t>(config_.vocab_size * options_.sequences));
    ASSIGN_OR_RETURN(
        model_, model::Model::Create(config_, std::move(weights), model::Precision::kNative, limits,
                                     options_.profile ? TimedOps(ops) : ops, team_, *store_));
    return absl::OkStatus();
  }

  std::span<const model::PageId> Pages(int64_t sequence) const {
    const auto count = static_cast<int64_t>(pages_.size()) / options_.sequences;
    return std::span(pages_).subspan(static_cast<size_t>(sequence * count),
                                     static_cast<size_t>(count));
  }

  // The prompts, one after the other, in chunks. Returns seconds.
  double RunPrompt() {
    const double start = WallNow();
    for (int64_t s = 0; s < options_.sequences; ++s) {
      for (int64_t at = 0; at < options_.prompt; at += options_.chunk) {
        const int64_t count = std::min(options_.chunk, options_.prompt - at);
        model::SequenceRows rows;
        rows.slot = static_cast<model::StateSlot>(s);
        rows.pages = Pages(s);
        rows.first_position = at;
        rows.num_rows = static_cast<int32_t>(count);
        rows.num_logit_rows = at + count == options_.prompt ? 1 : 0;
        const auto tokens =
            std::span(tokens_).subspan(static_cast<size_t>(at), static_cast<size_t>(count));
        const auto logits =
            std::span(logits_).first(static_cast<size_t>(rows.num_logit_rows * config_.vocab_size));
        model_->Forward({tokens, {&rows, 1}}, logits);
      }
    }
    const double seconds = WallNow() - start;
    if (options_.profile) PrintProfile("prompt");
    return seconds;
  }

  // Seconds for all workers together to read a token's weights.
  double ReadWall() {
    const int64_t part = active_bytes_ / options_.threads;
    const double start = WallNow();
    team_.Run([&](const base::WorkerRank& worker) {
      ReadSeconds(probe_data_.data() + worker.rank() * part, part);
    });
    return WallNow() - start;
  }

  // One token of every sequence at a time.
  Decoded RunDecode() {
    std::vector<double> ratios, thread_ratios;
    double total = 0.0;
    for (int64_t i = 0; i < options_.decode; ++i) {
      std::vector<model::SequenceRows> rows(static_cast<size_t>(options_.sequences));
      std::vector<int32_t> tokens(rows.size(), tokens_[static_cast<size_t>(options_.prompt + i)]);
      for (size_t s = 0; s < rows.size(); ++s) {
        rows[s].slot = static_cast<model::StateSlot>(s);
        rows[s].pages = Pages(static_cast<int64_t>(s));
        rows[s].first_position = options_.prompt + i;
        rows[s].first_row = static_cast<int32_t>(s);
        rows[s].num_rows = rows[s].num_logit_rows = 1;
      }
      const double start = WallNow();
      const double thread_start = Now();
      model_->Forward({tokens, rows}, logits_);
      const double thread_seconds = Now() - thread_start;
      const double seconds = WallNow() - start;
      total += seconds;
      if (i % 4 != 0) continue;
      const double probe_start = Now();
      ratios.push_back(ReadWall() / seconds);
      thread_ratios.push_back((Now() - probe_start) / thread_seconds);
    }
    if (options_.profile) PrintProfile("decode");
    return {static_cast<double>(options_.decode * options_.sequences) / total, Median(ratios),
            Median(thread_ratios)};
  }

  const Options options_;
  const model::ModelConfig config_;
  base::WorkerTeam team_;
  HugeMemory probe_data_;
  std::unique_ptr<kv::Store> store_;
  std::unique_ptr<model::Model> model_;
  std::vector<model::PageId> pages_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  int64_t active_bytes_ = 0;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of whole steps of a checkpoint");
  app.add_option("checkpoint", options.folder)->required();
  app.add_option("--threads", options.threads);
  app.add_option("--prompt", options.prompt);
  app.add_option("--chunk", options.chunk);
  app.add_option("--decode", options.decode);
  app.add_option("--sequences", options.sequences);
  app.add_option("--rounds", options.rounds);
  app.add_flag("--profile", options.profile, "time of each op, first worker");
  const std::map<std::string, kernels::OpChoice> tables = {{"auto", kernels::OpChoice::kAuto},
                                                           {"scalar", kernels::OpChoice::kScalar},
                                                           {"avx2", kernels::OpChoice::kAvx2},
                                                           {"avx512", kernels::OpChoice::kAvx512}};
  app.add_option("--kernels", options.ops)->transform(CLI::CheckedTransformer(tables));
  CLI11_PARSE(app, argc, argv);
  const auto bench = Bench::Create(options);
  if (!bench.ok()) {
    std::cerr << bench.status().message() << "\n";
    return 1;
  }
  (*bench)->Run();
  return 0;
}

}  // namespace
}  // namespace fulgur::bench_kernels

int main(int argc, char** argv) { return fulgur::bench_kernels::Main(argc, argv); }
