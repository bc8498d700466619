// Memory of one step: everything the forward pass computes and forgets, laid out once for the
// largest step. The attention and the expert half of a layer share their part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "kernels/expert_args.h"
#include "kernels/layer_args.h"
#include "kernels/linear.h"
#include "model/config.h"
#include "model/precision.h"

namespace fulgur::model {

struct StepLimits;

// Hands out cache-aligned pieces of one block of memory. With a null base it only measures.
class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}

  template <typename T>
  T* Take(int64_t count) {
    return reinterpret_cast<T*>(TakeBytes(count * static_cast<int64_t>(sizeof(T))));
  }
  int64_t mark() const { return used_; }
  void Rewind(int64_t mark) { used_ = mark; }
  int64_t peak() const { return peak_; }

 private:
  std::byte* TakeBytes(int64_t bytes);

  std::byte* base_;
  int64_t used_ = 0;
  int64_t peak_ = 0;
};

// The representations of activation rows that a set of weights reads.
struct Formats {
  bool f32 = false;
  bool bf16 = false;
  bool int8 = false;

  void Add(const kernels::PackedLinear& weight);
};
Formats FormatsOf(std::initializer_list<const kernels::PackedLinear*> weights);

// Room for activation rows in every representation that the precision knows.
struct ActivationBuffer {
  float* f32 = nullptr;
  tensor::BFloat16* bf16 = nullptr;
  int8_t* int8 = nullptr;
  float* int8_scale = nullptr;

  kernels::RowsOut Out(const Formats& wanted) const;
  // From row `row` of rows of `cols` elements on.
  kernels::RowsOut Out(const Formats& wanted, int64_t row, int64_t cols) const;
  kernels::ActivationRows View(int64_t rows, int64_t cols) const;
};

// How one worker groups the rows of a step by expert. Each worker makes its own: that costs no more
// time than waiting for one to do it.
struct ExpertGrouping {
  kernels::ExpertTask* tasks = nullptr;  // [E + shared]
  int32_t* slot_row = nullptr;           // [slots]
  float* slot_weight = nullptr;          // [slots]
  int32_t* expert_end = nullptr;         // [E] running ends of the experts' slots
};

// Memory of the drafter. `captured` is filled while the main model runs; the rest shares the part
// of a layer's halves, which stand still before and after the draft layers. C: context rows.
struct DraftScratch {
  float* captured = nullptr;  // DSpark: [ContextRows, targets x H] means of the streams

  // Before the layers; C: KeyRows.
  ActivationBuffer inputs;        // DSpark: [C, targets x H]; MTP: [C, S, H] normalised streams
  float* mixed = nullptr;         // [C, H]
  ActivationBuffer mixed_rows;    // [C, H]
  float* keys = nullptr;          // [blocks, C, D]
  std::byte* key_rows = nullptr;  // [blocks, C, D] in the cache's format

  // After the layers.
  float* collapsed = nullptr;    // [drafts, H]
  float* logits = nullptr;       // [drafts, V]
  float* markov = nullptr;       // [S, RK]
  ActivationBuffer markov_rows;  // [S, RK]
  float* bias = nullptr;         // [S, V]
};

// The most rows of a step whose main state a drafter needs: keys older than the window are never
// read, and rows whose logits are wanted may be drafts that do not stand.
int64_t ContextRows(const ModelConfig& config, const StepLimits& limits);

// The most rows whose drafter's keys are written at once.
int64_t KeyRows(const ModelConfig& config, const StepLimits& limits);

// What a drafter reads of a row of the main model: DSpark's targets x H, MTP's S x H.
int64_t DraftInputs(const ModelConfig& config);

// Drafts of one sequence in a step, at most.
int64_t MaxDrafts(const ModelConfig& config, const StepLimits& limits);

// Legend as in weights.h; T is the limit's max_tokens, or more if a step of the drafter has more
// rows.
struct Scratch {
  Scratch(const ModelConfig& config, Precision precision, const StepLimits& limits, int num_workers,
          Arena& arena);

  // The whole step.
  float* streams;               // [T, S, H]
  float* o;                     // [T, H] what the sub-layer returns to the streams
  float* post_comb;             // [T, S + S S]
  float* partials;              // [T, slices of H, M + 1]
  ActivationBuffer x;           // [T, H] what the sub-layer reads
  float* rotation;              // [T, R] layers without compression
  float* compressed_rotation;   // [T, R] compressed layers
  ActivationBuffer head_input;  // [logit rows, H]
  kernels::SharedRows shared_rows;

  // Attention.
  float* q_latent;                 // [T, QL]
  ActivationBuffer q_latent_rows;  // [T, QL]
  float* kv;                       // [T, D]
  std::byte* window_rows;          // [T, D] in the cache's format
  float* compressor_rows;          // [T, 2 C]
  float* index_compressor_rows;    // [T, 2 C]
  float* index_weights;            // [T, index heads]
  float* q;                        // [T, N D]
  float* index_q;                  // [T, index heads x index dim]
  float* index_scores;             // [index_score_count]
  int64_t index_score_count;
  ActivationBuffer attended;      // [T, N D]; int8: [G, T, N D / G]
  float* grouped;                 // [T, G OL]
  ActivationBuffer grouped_rows;  // [T, G OL]

  // Experts. Slots: T x (experts per token + shared experts).
  float* router_logits;                  // [T, E]
  int32_t* experts;                      // [T, experts per token]
  float* expert_weights;                 // [T, experts per token]
  float* h;                              // [slots, F]
  ActivationBuffer h_rows;               // [slots, F]
  std::vector<ExpertGrouping> grouping;  // [workers]

  DraftScratch draft;

 private:
  void PlaceStep(const ModelConfig& config, const StepLimits& limits, Arena& arena);
  void PlaceSharedRows(const ModelConfig& config, int num_workers, Arena& arena);
  void PlaceAttention(const ModelConfig& config, const StepLimits& limits, Arena& arena);
  void PlaceIndex(const ModelConfig& config, const StepLimits& limits, Arena& arena);
  void PlaceExperts(const ModelConfig& config, const StepLimits& limits, int num_workers,
                    Arena& arena);
  void PlaceDraft(const ModelConfig& config, const StepLimits& limits, Arena& arena);
  void PlaceDraftHead(const ModelConfig& config, const StepLimits& limits, Arena& arena);
  ActivationBuffer Rows(int64_t rows, int64_t cols, Arena& arena) const;

  Precision precision_;
};

}  // namespace fulgur::model
