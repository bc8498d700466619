#include "bench_model.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <utility>

#include "base/status_macros.h"
#include "model/checkpoint.h"
#include "model/dummy_weights.h"
#include "model/weight_loader.h"
#include "plan/measure.h"
#include "timed_ops.h"

namespace fulgur::bench_engine {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool HasTensors(const std::string& folder) {
  return std::ranges::any_of(std::filesystem::directory_iterator(folder), [](const auto& entry) {
    return entry.path().extension() == ".safetensors";
  });
}

absl::StatusOr<LoadedModel> LoadCheckpoint(const std::string& folder, int threads) {
  LoadedModel loaded;
  ASSIGN_OR_RETURN(const model::Checkpoint checkpoint, model::Checkpoint::Open(folder));
  ASSIGN_OR_RETURN(loaded.shape, plan::ShapeOfCheckpoint(checkpoint));
  for (const model::StoredTensor& tensor : checkpoint.tensors()) {
    loaded.file_bytes += static_cast<int64_t>(tensor.view.bytes.size());
  }
  model::LoadOptions load;
  load.num_threads = threads;
  const double start = Now();
  ASSIGN_OR_RETURN(loaded.weights, model::LoadWeights(checkpoint, load));
  loaded.seconds = Now() - start;
  return loaded;
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& folder, int threads) {
  if (HasTensors(folder)) return LoadCheckpoint(folder, threads);
  LoadedModel loaded;
  ASSIGN_OR_RETURN(const model::ModelConfig config, model::LoadConfig(folder));
  loaded.shape = plan::ShapeOfConfig(config);
  const double start = Now();
  ASSIGN_OR_RETURN(loaded.weights, model::MakeDummyWeights(config, {.num_threads = threads}));
  loaded.seconds = Now() - start;
  return loaded;
}

BenchModel::BenchModel(const BenchModelOptions& options, const model::ModelConfig& config)
    : options_(options), config_(config), team_(options.threads) {
  std::mt19937 random(7);
  tokens_.resize(static_cast<size_t>(options.max_position));
  for (int32_t& token : tokens_) {
    token = static_cast<int32_t>(random() % static_cast<uint64_t>(config.vocab_size));
  }
}

absl::StatusOr<std::unique_ptr<BenchModel>> BenchModel::Create(const BenchModelOptions& options,
                                                               const model::ModelConfig& config,
                                                               model::Weights weights,
                                                               const base::Machine& machine) {
  auto bench = std::unique_ptr<BenchModel>(new BenchModel(options, config));
  const kv::Layout layout = model::CacheLayout(config, model::Precision::kNative, 0);
  ASSIGN_OR_RETURN(auto store, kv::Store::Create(layout, options.pages, options.sequences));
  bench->store_ = std::make_unique<kv::Store>(std::move(store));
  for (int64_t i = 0; i < options.pages; ++i) {
    bench->pages_.push_back(static_cast<model::PageId>(i));
  }
  bench->FillMemory();
  bench->logits_.resize(static_cast<size_t>(config.vocab_size * options.sequences));
  const model::StepLimits limits = {.max_tokens = std::max(options.chunk, options.sequences),
                                    .max_sequences = options.sequences,
                                    .max_logit_rows = options.sequences,
                                    .max_position = options.max_position};
  const kernels::OpTable& ops = kernels::SelectOps(machine, options.ops);
  ASSIGN_OR_RETURN(bench->model_,
                   model::Model::Create(config, std::move(weights), model::Precision::kNative,
                                        limits, options.timed ? bench_kernels::TimedOps(ops) : ops,
                                        bench->team_, *bench->store_));
  return bench;
}

// Pairs of a random byte and 0x3c: small positive numbers as bf16 and as fp32 alike, so that
// nothing overflows, and entries that differ.
void BenchModel::FillMemory() {
  std::minstd_rand random(11);
  const auto fill = [&random](std::byte* bytes, int64_t size) {
    for (int64_t i = 0; i + 1 < size; i += 2) {
      bytes[i] = static_cast<std::byte>(random() & 0x7fU);
      bytes[i + 1] = std::byte{0x3c};
    }
  };
  const kv::Layout& layout = store_->layout();
  for (const model::PageId page : pages_) fill(store_->page(page), layout.page_bytes());
  for (int64_t i = 0; i < store_->num_slots(); ++i) {
    fill(store_->slot(static_cast<model::StateSlot>(i)), layout.slot_bytes());
  }
}

RunTime BenchModel::Forward(std::span<const int32_t> tokens,
                            std::span<const model::SequenceRows> rows) {
  int64_t wanted = 0;
  for (const model::SequenceRows& sequence : rows) wanted += sequence.num_logit_rows;
  const double start = Now();
  const double thread_start = plan::ThreadSeconds();
  model_->Forward({tokens, rows},
                  std::span(logits_).first(static_cast<size_t>(wanted * config_.vocab_size)));
  return {.wall = Now() - start, .thread = plan::ThreadSeconds() - thread_start};
}

RunTime BenchModel::RunPrompt(int64_t tokens) {
  RunTime total;
  for (int64_t at = 0; at < tokens; at += options_.chunk) {
    const int64_t count = std::min(options_.chunk, tokens - at);
    model::SequenceRows rows;
    rows.slot = 0;
    rows.pages = pages_;
    rows.first_position = at;
    rows.num_rows = static_cast<int32_t>(count);
    rows.num_logit_rows = at + count == tokens ? 1 : 0;
    const RunTime chunk =
        Forward(std::span(tokens_).subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
                {&rows, 1});
    total.wall += chunk.wall;
    total.thread += chunk.thread;
  }
  return total;
}

RunTime BenchModel::RunDecode(int64_t sequences, int64_t context) {
  const int64_t pages_each = kv::Layout::PagesFor(context + 1);
  std::vector<model::SequenceRows> rows(static_cast<size_t>(sequences));
  for (size_t s = 0; s < rows.size(); ++s) {
    rows[s].slot = static_cast<model::StateSlot>(s);
    rows[s].pages = std::span(pages_).subspan(s * static_cast<size_t>(pages_each),
                                              static_cast<size_t>(pages_each));
    rows[s].first_position = context;
    rows[s].first_row = static_cast<int32_t>(s);
    rows[s].num_rows = rows[s].num_logit_rows = 1;
  }
  // Every step other tokens, so that other experts are read.
  std::ranges::rotate(tokens_, tokens_.begin() + sequences);
  return Forward(std::span(tokens_).first(rows.size()), rows);
}

}  // namespace fulgur::bench_engine
