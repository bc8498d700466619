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

void ExpectNoAllocations(Precision precision, testing::Storage storage, kernels::OpChoice ops) {
  if (!kernels::Supports(base::DetectMachine(), ops)) return;
  testing::TestModelOptions options;
  options.precision = precision;
  options.ops = ops;
  options.num_workers = 2;
  testing::TestModel model(
      testing::TinyConfig(),
      testing::MakeWeights(testing::TinyConfig(), storage, precision == Precision::kReference),
      options);
  const std::vector<int32_t> tokens = testing::StandardTokens(testing::TinyConfig(), 300);
  std::vector<float> logits(tokens.size() * static_cast<size_t>(model.vocab_size()));
  // `rows` of one sequence, and one of another.
  const auto step = [&](int64_t first_position, int32_t rows) {
    const SequenceRows sequences[] = {{0, model.pages(0), first_position, 0, rows, 1},
                                      {1, model.pages(1), first_position, rows, 1, 1}};
    const StepBatch batch = {std::span(tokens).first(static_cast<size_t>(rows + 1)), sequences};
    model.model().Forward(batch,
                          std::span(logits).first(2 * static_cast<size_t>(model.vocab_size())));
  };
  step(0, 200);  // the largest step comes first, as engines do it
  const int64_t before = num_allocations.load();
  step(200, 60);
  for (int64_t position = 260; position < 290; ++position) step(position, 1);
  EXPECT_EQ(num_allocations.load(), before);
}

TEST(StepMemory, NothingIsAllocatedAfterTheFirstStep) {
  using kernels::OpChoice;
  using testing::Storage;
  ExpectNoAllocations(Precision::kReference, Storage::kF32, OpChoice::kScalar);
  for (const OpChoice ops : {OpChoice::kScalar, OpChoice::kAvx512}) {
    for (const Storage storage : {Storage::kFp8Fp4, Storage::kInt8}) {
      ExpectNoAllocations(Precision::kNative, storage, ops);
    }
  }
}

}  // namespace
}  // namespace fulgur::model
