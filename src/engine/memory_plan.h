// How many pages and state slots fit into the memory given to sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kv/layout.h"

namespace fulgur::engine {

struct MemoryRequest {
  std::optional<int64_t> kv_cache_bytes =
      std::nullopt;                 // exactly that much (--kv-cache-memory-bytes), or else
  double memory_utilization = 0.9;  // this share of what is left (--gpu-memory-utilization)
  std::optional<int64_t> num_pages =
      std::nullopt;  // overrides the number of pages (--num-gpu-blocks-override)
  int64_t max_num_seqs = 64;
  int64_t max_model_len = 0;
  bool shorten_to_fit = false;  // a max_model_len that does not fit is made shorter
};

struct MemoryPlan {
  int64_t num_pages = 0;
  int64_t num_slots = 0;
  int64_t page_bytes = 0;
  int64_t slot_bytes = 0;
  int64_t max_model_len = 0;

  int64_t total_bytes() const { return num_pages * page_bytes + num_slots * slot_bytes; }
  int64_t capacity_tokens() const { return num_pages * kv::kPageTokens; }
};

// One slot per running sequence, and pages for the rest, but no more than could ever be used.
// `available_bytes` is what the machine has left for sequences and must not be negative; it counts
// only where the request names no size. kResourceExhausted, with the need, what there is, and the
// longest max_model_len that fits, if one sequence of max_model_len does not.
absl::StatusOr<MemoryPlan> PlanMemory(const kv::Layout& layout, const MemoryRequest& request,
                                      int64_t available_bytes);

// One sentence for the log.
std::string DescribePlan(const MemoryPlan& plan);

}  // namespace fulgur::engine
