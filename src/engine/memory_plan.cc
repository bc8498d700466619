#include "engine/memory_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace fulgur::engine {
namespace {

using kv::Layout;

double Gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

int64_t BudgetBytes(const MemoryRequest& request, int64_t available_bytes) {
  if (request.kv_cache_bytes) return *request.kv_cache_bytes;
  return static_cast<int64_t>(request.memory_utilization * static_cast<double>(available_bytes));
}

// The last token of a sequence is never computed, so it needs no row.
int64_t PagesOfOne(int64_t max_model_len) { return Layout::PagesFor(max_model_len - 1); }

absl::Status TooSmall(const MemoryPlan& plan, const MemoryRequest& request, int64_t budget) {
  const int64_t longest = plan.num_pages * kv::kPageTokens + 1;
  const int64_t slot_bytes = plan.num_slots * plan.slot_bytes;
  const int64_t needed = slot_bytes + PagesOfOne(request.max_model_len) * plan.page_bytes;
  const std::string remedy =
      plan.num_pages > 0
          ? absl::StrFormat("at most --max-model-len %d fits; lower it or --max-num-seqs", longest)
          : "not even the state slots leave room for tokens; lower --max-num-seqs";
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the cache needs %.3f GB for --max-num-seqs %d (%.3f GB of state slots) and one sequence of "
      "--max-model-len %d, but has %.3f GB: %s, or give it more memory with "
      "--kv-cache-memory-bytes or --gpu-memory-utilization",
      Gigabytes(needed), request.max_num_seqs, Gigabytes(slot_bytes), request.max_model_len,
      Gigabytes(budget), remedy));
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(const Layout& layout, const MemoryRequest& request,
                                      int64_t available_bytes) {
  MemoryPlan plan{.num_slots = request.max_num_seqs,
                  .page_bytes = layout.page_bytes(),
                  .slot_bytes = layout.slot_bytes(),
                  .max_model_len = request.max_model_len};
  const int64_t budget = BudgetBytes(request, available_bytes);
  const int64_t for_pages = std::max<int64_t>(0, budget - plan.num_slots * plan.slot_bytes);
  // A model without compressed layers has pages of no size.
  const int64_t usable = request.max_num_seqs * PagesOfOne(request.max_model_len);
  const int64_t affordable = plan.page_bytes == 0 ? usable : for_pages / plan.page_bytes;
  plan.num_pages = request.num_pages ? *request.num_pages : std::min(usable, affordable);

  if (plan.num_pages < PagesOfOne(plan.max_model_len)) {
    if (!request.shorten_to_fit || plan.num_pages < 1) return TooSmall(plan, request, budget);
    plan.max_model_len = plan.num_pages * kv::kPageTokens + 1;
  }
  return plan;
}

std::string DescribePlan(const MemoryPlan& plan) {
  const int64_t of_one = PagesOfOne(plan.max_model_len);
  return absl::StrFormat(
      "sequence memory: %d pages of %d tokens (%.3f MB each) and %d state slots (%.3f MB each), "
      "%.3f GB in all; room for %d tokens, or %.1f sequences of %d tokens",
      plan.num_pages, kv::kPageTokens, static_cast<double>(plan.page_bytes) / 1e6, plan.num_slots,
      static_cast<double>(plan.slot_bytes) / 1e6, Gigabytes(plan.total_bytes()),
      plan.capacity_tokens(),
      std::min(static_cast<double>(plan.num_pages) / static_cast<double>(of_one),
               static_cast<double>(plan.num_slots)),
      plan.max_model_len);
}

}  // namespace fulgur::engine
