#include "cli/plan_text.h"

#include <algorithm>
#include <map>

#include "cli/model_memory.h"
#include "fmt/format.h"
#include "plan/roofline.h"

namespace fulgur::cli {
namespace {

constexpr int64_t kKilo = 1024;
constexpr int64_t kMega = kKilo * kKilo;

std::string FormatTokens(int64_t tokens) {
  if (tokens % kMega == 0) return fmt::format("{}M", tokens / kMega);
  if (tokens % kKilo == 0) return fmt::format("{}K", tokens / kKilo);
  return fmt::format("{}", tokens);
}

std::string FormatRate(double rate) {
  return rate < 10.0 ? fmt::format("{:.2f}", rate)
                     : fmt::format("{:.{}f}", rate, rate < 100.0 ? 1 : 0);
}

class PlanWriter {
 public:
  PlanWriter(const PlanOptions& options, const plan::ModelShape& model,
             const plan::MachineFigures& machine)
      : options_(options),
        model_(model),
        machine_(machine),
        engine_(EngineOptionsOf(options, machine.cores)),
        layout_(SequenceLayout(engine_, model.config)),
        fixed_bytes_(model.weight_bytes + engine::StepBytes(engine_, model.config)) {}

  PlanText Write() const {
    const bool fits = Fits(1, *std::ranges::min_element(options_.contexts));
    std::string text = fmt::format("model    {}: {} layers\nmachine  {}\n\n", options_.model,
                                   model_.config.num_layers, plan::DescribeFigures(machine_));
    text += DescribeMemory(fits) + DescribeNeeds() + DescribeDecode() + DescribePrompts();
    if (options_.stages) text += DescribeStages();
    return {fits, text};
  }

 private:
  // As serving has it: a share of what is left.
  int64_t SequenceMemory() const {
    const auto left = static_cast<double>(machine_.memory_bytes - fixed_bytes_);
    return static_cast<int64_t>(std::max(0.0, left) * engine_.memory.memory_utilization);
  }
  bool Fits(int64_t users, int64_t context) const {
    return users * SequenceBytes(layout_, context) <= SequenceMemory();
  }

  std::string DescribeMemory(bool fits) const;
  std::string DescribeNeeds() const;
  std::string DescribeDecode() const;
  std::string DescribePrompts() const;
  std::string DescribeStages() const;

  // A table with a row for each context and a column for each number of users.
  template <typename Cell>
  std::string Table(const Cell& cell) const {
    std::string text = fmt::format("  {:>8}", "context");
    for (const int64_t users : options_.users) {
      text += fmt::format(" {:>14}", fmt::format("{} {}", users, users == 1 ? "user" : "users"));
    }
    for (const int64_t context : options_.contexts) {
      text += fmt::format("\n  {:>8}", FormatTokens(context));
      for (const int64_t users : options_.users) {
        text += fmt::format(" {:>14}", cell(users, context));
      }
    }
    return text + "\n\n";
  }

  const PlanOptions& options_;
  const plan::ModelShape& model_;
  const plan::MachineFigures& machine_;
  const engine::ModelEngineOptions engine_;
  const kv::Layout layout_;
  const int64_t fixed_bytes_;  // weights and step
};

std::string PlanWriter::DescribeMemory(bool fits) const {
  std::string text = fmt::format(
      "memory\n  weights: {}\n  step: {} (at most {} tokens, {} requests)\n  sequence memory: {}\n"
      "  restart point: {}, beside the pages before it\n",
      FormatBytes(model_.weight_bytes), FormatBytes(fixed_bytes_ - model_.weight_bytes),
      engine_.limits.max_num_batched_tokens, engine_.limits.max_num_seqs,
      DescribeSequenceMemory(layout_), FormatBytes(layout_.slot_bytes()));
  if (fits) {
    return text + fmt::format("  fits: of {}, {} are left for sequences\n\n",
                              FormatBytes(machine_.memory_bytes), FormatBytes(SequenceMemory()));
  }
  const auto sequence =
      static_cast<double>(SequenceBytes(layout_, *std::ranges::min_element(options_.contexts)));
  const int64_t needed =
      fixed_bytes_ + static_cast<int64_t>(sequence / engine_.memory.memory_utilization);
  return text + fmt::format("  does not fit: needs {} for one user, has {}\n\n",
                            FormatBytes(needed), FormatBytes(machine_.memory_bytes));
}

std::string PlanWriter::DescribeNeeds() const {
  return "memory needed; * does not fit\n" + Table([this](int64_t users, int64_t context) {
           return FormatBytes(fixed_bytes_ + users * SequenceBytes(layout_, context)) +
                  (Fits(users, context) ? "" : " *");
         });
}

std::string PlanWriter::DescribeDecode() const {
  return "expected speed: decoded tokens per second, all users together; without speculation\n" +
         Table([this](int64_t users, int64_t context) {
           const plan::StepShape step{
               .sequences = users, .context = context - 1, .logit_rows = users};
           const double seconds = plan::PredictStep(model_, layout_, step, machine_).seconds;
           return FormatRate(static_cast<double>(users) / seconds) +
                  (Fits(users, context) ? "" : " *");
         });
}

std::string PlanWriter::DescribePrompts() const {
  std::string text =
      fmt::format("expected speed: prompts, in chunks of {} tokens\n", options_.chunk);
  for (const int64_t context : options_.contexts) {
    const double seconds = plan::PredictPrompt(model_, layout_, context, options_.chunk, machine_);
    text += fmt::format("  {:>8} tokens in {:.1f} s: {} tokens/s\n", FormatTokens(context), seconds,
                        FormatRate(static_cast<double>(context) / seconds));
  }
  return text;
}

// Of one user with the first context.
std::string PlanWriter::DescribeStages() const {
  const plan::StepShape step{.context = options_.contexts.front() - 1};
  struct Sum {
    double bytes = 0.0, ops = 0.0, read = 0.0, compute = 0.0, barrier = 0.0, total = 0.0;
  };
  std::map<plan::StageKind, Sum> sums;
  for (const plan::StageWork& stage : plan::WorkOfStep(model_, layout_, step)) {
    const plan::StageTime time = plan::TimeOf(stage, machine_);
    Sum& sum = sums[stage.kind];
    sum.bytes += stage.bytes();
    sum.ops += stage.ops();
    sum.read += time.read;
    sum.compute += time.compute;
    sum.barrier += time.barrier;
    sum.total += time.total;
  }
  std::string text = fmt::format(
      "\na decoded token of one user, context {}\n  {:<20}{:>10}{:>10}{:>10}{:>10}{:>10}"
      "{:>10}\n",
      FormatTokens(options_.contexts.front()), "", "MB", "MOps", "ms", "reading", "computing",
      "barriers");
  for (const auto& [kind, sum] : sums) {
    text += fmt::format("  {:<20}{:>10.1f}{:>10.1f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}\n",
                        plan::StageName(kind), sum.bytes / 1e6, sum.ops / 1e6, sum.total * 1e3,
                        sum.read * 1e3, sum.compute * 1e3, sum.barrier * 1e3);
  }
  return text;
}

}  // namespace

PlanText DescribePlan(const PlanOptions& options, const plan::ModelShape& model,
                      const plan::MachineFigures& machine) {
  return PlanWriter(options, model, machine).Write();
}

}  // namespace fulgur::cli
