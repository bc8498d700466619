// A step allocates nothing once the model is warm, whatever its shape. Counts every operator new of
// the process.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/machine.h"
#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace {
std::atomic<int64_t> num_allocations{0};

void* Allocate(std::size_t size, std::size_t alignment) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) std::abort();
  return memory;
}
}  // namespace

void* operator new(std::size_t size) { return Allocate(size, 16); }
void* operator new[](std::size_t size) { return Allocate(size, 16); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace fulgur::model {
namespace {

// Takes the first token.
class FirstToken : public DraftChooser {
 public:
  int32_t Choose(int32_t /*request*/, int32_t /*slot*/, std::span<const float> /*row*/) override {
    return 0;
  }
};

struct StepShape {
  Precision precision = Precision::kNative;
  testing::Storage storage = testing::Storage::kFp8Fp4;
  kernels::OpChoice ops = kernels::OpChoice::kScalar;
  DrafterKind drafter = DrafterKind::kNone;
};

void ExpectNoAllocations(const StepShape& shape) {
  if (!kernels::Supports(base::DetectMachine(), shape.ops)) return;
  testing::TestModelOptions options;
  options.precision = shape.precision;
  options.ops = shape.ops;
  options.num_workers = 2;
  options.lookahead = 3;
  const ModelConfig config = testing::TinyConfig(shape.drafter);
  testing::TestModel model(
      config, testing::MakeWeights(config, shape.storage, shape.precision == Precision::kReference),
      options);
  const std::vector<int32_t> tokens = testing::StandardTokens(config, 300);
  std::vector<float> logits(tokens.size() * static_cast<size_t>(model.vocab_size()));
  FirstToken chooser;
  Drafts drafts;
  // `rows` of one sequence, and one of another.
  const auto step = [&](int64_t first_position, int32_t rows, int32_t num_drafts) {
    const SequenceRows sequences[] = {{0, model.pages(0), first_position, 0, rows, 1},
                                      {1, model.pages(1), first_position, rows, 1, 1}};
    const StepBatch batch = {std::span(tokens).first(static_cast<size_t>(rows + 1)), sequences};
    model.model().Forward(batch,
                          std::span(logits).first(2 * static_cast<size_t>(model.vocab_size())));
    if (shape.drafter == DrafterKind::kNone) return;
    const DraftRows accepted[] = {{0, rows, 7, num_drafts}, {1, 1, 9, num_drafts}};
    model.model().Propose(accepted, chooser, drafts);
  };
  step(0, 200, 3);  // the largest step comes first, as engines do it
  const int64_t before = num_allocations.load();
  step(200, 60, 0);
  for (int32_t i = 0; i < 30; ++i) step(260 + i, 1, i % 4);
  EXPECT_EQ(num_allocations.load(), before);
}

TEST(StepMemory, NothingIsAllocatedAfterTheFirstStep) {
  using kernels::OpChoice;
  using testing::Storage;
  ExpectNoAllocations({Precision::kReference, Storage::kF32, OpChoice::kScalar});
  for (const OpChoice ops : {OpChoice::kScalar, OpChoice::kAvx512}) {
    for (const Storage storage : {Storage::kFp8Fp4, Storage::kInt8}) {
      ExpectNoAllocations({Precision::kNative, storage, ops});
    }
  }
}

TEST(StepMemory, NothingIsAllocatedByDrafters) {
  using kernels::OpChoice;
  using testing::Storage;
  for (const DrafterKind drafter : {DrafterKind::kMtp, DrafterKind::kDspark}) {
    for (const Storage storage : {Storage::kFp8Fp4, Storage::kInt8}) {
      ExpectNoAllocations({Precision::kNative, storage, OpChoice::kAuto, drafter});
    }
  }
}

}  // namespace
}  // namespace fulgur::model
