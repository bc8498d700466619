// Runs a checkpoint over token sequences: what tests and measurements ask the model from outside.
//
//   model_oracle logits   --model DIR [options] --out FILE < TOKENS   all logits, fp32 [T, V]
//   model_oracle greedy   --model DIR [options] --steps N < TOKENS    N greedy tokens a line
//   model_oracle distance --model DIR [options] < TOKENS              native against reference
//   model_oracle drafts   --model DIR [options] --drafts N --out FILE < TOKENS
//                         N greedy drafts behind the last token of a sequence: tokens, then
//                         confidence, a line each; their logits to FILE, fp32 [N, V]
//
// TOKENS: one sequence a line, ids separated by blanks. For `logits`, sequences run one after the
// other in chunks of --chunks rows, or all at once with --packed.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "fmt/format.h"
#include "model/checkpoint.h"
#include "model/drafter_source.h"
#include "model/testing/test_model.h"
#include "model/weight_loader.h"

namespace fulgur::model::testing {
namespace {

struct Options {
  std::string folder;
  std::string precision = "native";
  std::string ops = "auto";
  std::string out;
  int threads = 1;
  std::vector<int64_t> chunks = {512};
  bool packed = false;
  int64_t steps = 32;
  int64_t drafts = 0;  // 0: no drafter is loaded
};

using Sequences = std::vector<std::vector<int32_t>>;

Sequences ReadSequences(std::istream& input) {
  Sequences sequences;
  for (std::string line; std::getline(input, line);) {
    std::istringstream ids(line);
    std::vector<int32_t> tokens;
    for (int32_t id = 0; ids >> id;) tokens.push_back(id);
    if (!tokens.empty()) sequences.push_back(std::move(tokens));
  }
  return sequences;
}

int64_t Longest(const Sequences& sequences) {
  size_t longest = 1;
  for (const auto& tokens : sequences) longest = std::max(longest, tokens.size());
  return static_cast<int64_t>(longest);
}

kernels::OpChoice ParseOps(const std::string& name) {
  if (name == "scalar") return kernels::OpChoice::kScalar;
  return name == "avx512" ? kernels::OpChoice::kAvx512 : kernels::OpChoice::kAuto;
}

absl::StatusOr<std::unique_ptr<TestModel>> Load(const Options& options, Precision precision,
                                                const Sequences& sequences) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(options.folder));
  LoadOptions load;
  load.precision = precision;
  load.num_threads = options.threads;
  ModelConfig config = checkpoint.config();
  if (options.drafts > 0) {
    ASSIGN_OR_RETURN(config, UseDrafter(config, checkpoint));
    load.drafter = &checkpoint;
  }
  ASSIGN_OR_RETURN(Weights weights, LoadWeights(checkpoint, load));
  TestModelOptions model;
  model.precision = precision;
  model.ops = ParseOps(options.ops);
  model.num_workers = options.threads;
  model.max_position = Longest(sequences) + options.steps;
  model.lookahead = options.drafts;
  model.max_sequences = options.packed ? static_cast<int64_t>(sequences.size()) : 1;
  model.max_tokens = *std::max_element(options.chunks.begin(), options.chunks.end());
  if (options.packed) model.max_tokens = Longest(sequences) * model.max_sequences;
  return std::make_unique<TestModel>(config, std::move(weights), model);
}

Precision ParsePrecision(const std::string& name) {
  return name == "reference" ? Precision::kReference : Precision::kNative;
}

absl::Status WriteFloats(const std::string& path, const std::vector<float>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
  if (!file) return absl::UnavailableError("cannot write " + path);
  return absl::OkStatus();
}

absl::Status PrintLogits(const Options& options, const Sequences& sequences) {
  ASSIGN_OR_RETURN(const auto model, Load(options, ParsePrecision(options.precision), sequences));
  std::vector<float> logits;
  if (options.packed) {
    std::vector<TestModel::Rows> rows;
    for (const auto& tokens : sequences) {
      rows.push_back({static_cast<int32_t>(rows.size()), 0, tokens});
    }
    logits = model->Step(rows);
  } else {
    for (const auto& tokens : sequences) {
      const std::vector<float> part = model->Run(0, tokens, options.chunks);
      logits.insert(logits.end(), part.begin(), part.end());
    }
  }
  return WriteFloats(options.out, logits);
}

size_t ArgMax(const float* logits, int64_t count) {
  return static_cast<size_t>(std::max_element(logits, logits + count) - logits);
}

absl::Status PrintGreedy(const Options& options, const Sequences& sequences) {
  ASSIGN_OR_RETURN(const auto model, Load(options, ParsePrecision(options.precision), sequences));
  const int64_t vocabulary = model->vocab_size();
  for (std::vector<int32_t> tokens : sequences) {
    std::vector<float> logits = model->Run(0, tokens, options.chunks);
    for (int64_t step = 0; step < options.steps; ++step) {
      const float* last = logits.data() + (static_cast<int64_t>(logits.size()) - vocabulary);
      tokens.push_back(static_cast<int32_t>(ArgMax(last, vocabulary)));
      std::cout << tokens.back() << (step + 1 < options.steps ? " " : "\n");
      const auto position = static_cast<int64_t>(tokens.size()) - 1;
      logits = model->Step({{0, position, std::span(tokens).last(1)}});
    }
  }
  return absl::OkStatus();
}

// The last token is the one that the main model has just given.
absl::Status PrintDrafts(const Options& options, const Sequences& sequences) {
  if (sequences.size() != 1 || sequences[0].size() < 2) {
    return absl::InvalidArgumentError("drafts are made for one sequence of at least two tokens");
  }
  ASSIGN_OR_RETURN(const auto model, Load(options, ParsePrecision(options.precision), sequences));
  const std::span<const int32_t> tokens = sequences[0];
  TestModel::Proposal proposal;
  size_t step = 0;
  for (size_t begin = 0; begin + 1 < tokens.size(); ++step) {
    const int64_t chunk = options.chunks[std::min(step, options.chunks.size() - 1)];
    const size_t count = std::min(static_cast<size_t>(chunk), tokens.size() - 1 - begin);
    model->Step({{0, static_cast<int64_t>(begin), tokens.subspan(begin, count)}});
    begin += count;
    const bool last = begin + 1 == tokens.size();
    const DraftRows rows = {.sequence = 0,
                            .num_accepted = static_cast<int32_t>(count),
                            .next_token = tokens[begin],
                            .num_drafts = static_cast<int32_t>(last ? options.drafts : 0)};
    proposal = model->Propose({&rows, 1});
  }
  fmt::print("{}\n{}\n", fmt::join(proposal.drafts.tokens, " "),
             fmt::join(proposal.drafts.confidence, " "));
  return WriteFloats(options.out, proposal.logits);
}

// Natural logarithms of the softmax of one row.
std::vector<double> LogSoftmax(const float* logits, int64_t count) {
  const double largest = *std::max_element(logits, logits + count);
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - largest);
  std::vector<double> logs;
  for (int64_t i = 0; i < count; ++i) logs.push_back(logits[i] - largest - std::log(sum));
  return logs;
}

struct Distance {
  double divergence = 0.0;  // Kullback-Leibler, reference against native, nats
  double largest = 0.0;
  int64_t same_best = 0;
  int64_t positions = 0;

  void Add(const float* reference, const float* native, int64_t count) {
    const std::vector<double> p = LogSoftmax(reference, count);
    const std::vector<double> q = LogSoftmax(native, count);
    double sum = 0.0;
    for (size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
    divergence += sum;
    largest = std::max(largest, sum);
    same_best += ArgMax(reference, count) == ArgMax(native, count) ? 1 : 0;
    ++positions;
  }
};

absl::Status PrintDistance(const Options& options, const Sequences& sequences) {
  ASSIGN_OR_RETURN(const auto reference, Load(options, Precision::kReference, sequences));
  ASSIGN_OR_RETURN(const auto native, Load(options, Precision::kNative, sequences));
  const int64_t vocabulary = reference->vocab_size();
  Distance distance;
  for (const auto& tokens : sequences) {
    const std::vector<float> exact = reference->Run(0, tokens, options.chunks);
    const std::vector<float> rounded = native->Run(0, tokens, options.chunks);
    for (size_t t = 0; t < tokens.size(); ++t) {
      const auto offset = static_cast<int64_t>(t) * vocabulary;
      distance.Add(exact.data() + offset, rounded.data() + offset, vocabulary);
    }
  }
  const auto count = static_cast<double>(std::max<int64_t>(distance.positions, 1));
  fmt::print("positions {}\nmean KL {:.6f}\nlargest KL {:.6f}\ntop-1 agreement {:.4f}\n",
             distance.positions, distance.divergence / count, distance.largest,
             static_cast<double>(distance.same_best) / count);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Runs a checkpoint over token sequences");
  Options options;
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* command = app.add_subcommand(name, help);
    command->add_option("--model", options.folder)->required();
    command->add_option("--precision", options.precision)
        ->check(CLI::IsMember({"native", "reference"}));
    command->add_option("--ops", options.ops)->check(CLI::IsMember({"auto", "scalar", "avx512"}));
    command->add_option("--threads", options.threads)->check(CLI::PositiveNumber);
    command->add_option("--chunks", options.chunks)->delimiter(',');
    return command;
  };
  CLI::App* logits = add("logits", "writes all logits");
  logits->add_option("--out", options.out)->required();
  logits->add_flag("--packed", options.packed);
  CLI::App* greedy = add("greedy", "prints greedy continuations");
  greedy->add_option("--steps", options.steps);
  CLI::App* drafts = add("drafts", "prints greedy drafts");
  drafts->add_option("--drafts", options.drafts)->required()->check(CLI::PositiveNumber);
  drafts->add_option("--out", options.out)->required();
  const CLI::App* distance = add("distance", "compares native with reference precision");
  CLI11_PARSE(app, argc, argv);
  const Sequences sequences = ReadSequences(std::cin);
  absl::Status status;
  if (logits->parsed()) status = PrintLogits(options, sequences);
  if (drafts->parsed()) status = PrintDrafts(options, sequences);
  if (greedy->parsed()) status = PrintGreedy(options, sequences);
  if (distance->parsed()) status = PrintDistance(options, sequences);
  if (status.ok()) return 0;
  std::cerr << status.message() << std::endl;
  return 1;
}

}  // namespace
}  // namespace fulgur::model::testing

int main(int argc, char** argv) { return fulgur::model::testing::Main(argc, argv); }
