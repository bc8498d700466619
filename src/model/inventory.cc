#include "model/inventory.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/json.h"
#include "model/checkpoint_problems.h"
#include "model/tensor_names.h"

namespace fulgur::model {
namespace {

using kernels::WeightFormat;
using tensor::DType;
using Kind = CheckpointProblems::Kind;

constexpr int64_t kFp8Block = 128;
constexpr int64_t kFp4Block = 32;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Looks up the tensors of slots one by one and remembers which tensors of the checkpoint are used.
class Matcher {
 public:
  explicit Matcher(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  std::vector<FilledSlot> Fill(std::span<const TensorSlot> slots, TensorTotals& totals);
  // Those whose names begin so.
  void RefuseUnused(std::string_view prefix);
  absl::Status status() const { return problems_.ToStatus(checkpoint_.folder()); }

 private:
  FilledSlot FillOne(const TensorSlot& slot);
  void FillLinear(FilledSlot& filled);
  void FillFp8(FilledSlot& filled);
  void FillFp4(FilledSlot& filled);
  void FillInteger(FilledSlot& filled, WeightFormat format);
  void CheckGroups(const FilledSlot& filled);

  const StoredTensor* Use(const std::string& name);
  void UseSiblings(const std::string& name);
  const StoredTensor* UseRequired(const std::string& name, std::span<const int64_t> shape);
  void HasType(const StoredTensor& tensor, std::initializer_list<DType> accepted);
  void HasShape(const StoredTensor& tensor, const std::vector<int64_t>& shape);
  void HasChannelShape(const StoredTensor& tensor, int64_t channels);
  void Unsupported(const StoredTensor& tensor, std::string_view why);

  std::string Where(const StoredTensor& tensor) const {
    return fmt::format("{} in {}", io::Shortened(tensor.view.name), checkpoint_.FileOf(tensor));
  }

  const Checkpoint& checkpoint_;
  CheckpointProblems problems_;
  std::unordered_set<const StoredTensor*> used_;
  TensorTotals totals_;
};

std::vector<FilledSlot> Matcher::Fill(std::span<const TensorSlot> slots, TensorTotals& totals) {
  totals_ = {};
  std::vector<FilledSlot> filled;
  filled.reserve(slots.size());
  for (const TensorSlot& slot : slots) {
    if (slot.optional && checkpoint_.Find(slot.name) == nullptr) continue;
    filled.push_back(FillOne(slot));
  }
  totals = totals_;
  return filled;
}

FilledSlot Matcher::FillOne(const TensorSlot& slot) {
  FilledSlot filled;
  filled.slot = &slot;
  filled.weight = UseRequired(slot.name, slot.shape);
  if (filled.weight == nullptr) {
    UseSiblings(slot.name);
    return filled;
  }
  switch (slot.kind) {
    case TensorKind::kLinear:
    case TensorKind::kFloatLinear:
      FillLinear(filled);
      break;
    case TensorKind::kVector:
    case TensorKind::kEmbedding:
      HasType(*filled.weight, {DType::kBf16, DType::kF16, DType::kF32});
      HasShape(*filled.weight, slot.shape);
      break;
    case TensorKind::kExpertTable:
      HasType(*filled.weight, {DType::kI64, DType::kI32});
      HasShape(*filled.weight, slot.shape);
      break;
  }
  return filled;
}

void Matcher::FillLinear(FilledSlot& filled) {
  const StoredTensor& weight = *filled.weight;
  const std::string_view described = checkpoint_.quant_description().TypeOf(weight.name);
  if (described == "W8A8_DYNAMIC") return FillInteger(filled, WeightFormat::kInt8);
  if (described == "W4A8_DYNAMIC") return FillInteger(filled, WeightFormat::kInt4);
  if (described != "FLOAT") {
    return Unsupported(weight, fmt::format("is described as {}; accepted are FLOAT, W8A8_DYNAMIC "
                                           "and W4A8_DYNAMIC",
                                           io::Shortened(described)));
  }
  if (weight.view.type == DType::kF8E4M3) return FillFp8(filled);
  if (weight.view.type == DType::kI8) return FillFp4(filled);
  HasType(weight, {DType::kBf16, DType::kF16, DType::kF32, DType::kF8E4M3, DType::kI8});
  HasShape(weight, filled.slot->shape);
  // fp16 has more mantissa than bf16: only fp32 keeps its values.
  filled.format = weight.view.type == DType::kBf16 ? WeightFormat::kBf16 : WeightFormat::kF32;
}

void Matcher::FillFp8(FilledSlot& filled) {
  const TensorSlot& slot = *filled.slot;
  const std::vector<int64_t> blocks = {CeilDiv(slot.out(), kFp8Block),
                                       CeilDiv(slot.in(), kFp8Block)};
  filled.format = WeightFormat::kFp8Block;
  HasShape(*filled.weight, slot.shape);
  filled.scale = UseRequired(SiblingName(slot.name, "scale"), blocks);
  if (filled.scale == nullptr) return;
  HasType(*filled.scale, {DType::kF8E8M0, DType::kF32});
  HasShape(*filled.scale, blocks);
  CheckGroups(filled);
}

void Matcher::FillFp4(FilledSlot& filled) {
  const TensorSlot& slot = *filled.slot;
  const std::vector<int64_t> blocks = {slot.out(), slot.in() / kFp4Block};
  filled.format = WeightFormat::kFp4;
  if (slot.in() % kFp4Block != 0) {
    return Unsupported(*filled.weight, fmt::format("is FP4 with {} inputs; accepted are multiples "
                                                   "of {}",
                                                   slot.in(), kFp4Block));
  }
  filled.scale = Use(SiblingName(slot.name, "scale"));
  if (filled.scale == nullptr) {
    return Unsupported(*filled.weight,
                       "is I8, but neither a .scale nor quant_model_description.json says how it "
                       "is quantised");
  }
  HasShape(*filled.weight, {slot.out(), slot.in() / 2});
  HasType(*filled.scale, {DType::kF8E8M0});
  HasShape(*filled.scale, blocks);
}

// The offset may be left out; scale_bias corrects a trick of other hardware and is not needed.
void Matcher::FillInteger(FilledSlot& filled, WeightFormat format) {
  const TensorSlot& slot = *filled.slot;
  const std::vector<int64_t> column = {slot.out(), 1};
  filled.format = format;
  const bool in_pairs = format == WeightFormat::kInt4;
  HasType(*filled.weight, {DType::kI8});
  HasShape(*filled.weight, {in_pairs ? slot.out() / 2 : slot.out(), slot.in()});
  if (in_pairs && slot.out() % 2 != 0) {
    Unsupported(*filled.weight, "is W4A8 with an odd number of outputs");
  }
  filled.scale = UseRequired(SiblingName(slot.name, "weight_scale"), column);
  filled.offset = Use(SiblingName(slot.name, "weight_offset"));
  for (const StoredTensor* tensor : {filled.scale, filled.offset}) {
    if (tensor == nullptr) continue;
    HasType(*tensor, {DType::kF32});
    HasChannelShape(*tensor, slot.out());
  }
  Use(SiblingName(slot.name, "scale_bias"));
  CheckGroups(filled);
}

// A group becomes a linear of its own, so its rows need whole scale blocks, or lie inside one.
void Matcher::CheckGroups(const FilledSlot& filled) {
  const int64_t rows = filled.slot->out() / filled.slot->groups;
  if (filled.slot->groups == 1) return;
  if (filled.format == WeightFormat::kFp8Block && rows % kFp8Block != 0 && kFp8Block % rows != 0) {
    Unsupported(*filled.weight, fmt::format("is FP8 with {} outputs per group; accepted are "
                                            "multiples and divisors of {}",
                                            rows, kFp8Block));
  }
  if (filled.format == WeightFormat::kInt4 && rows % 2 != 0) {
    Unsupported(*filled.weight, "is W4A8 with an odd number of outputs per group");
  }
}

const StoredTensor* Matcher::Use(const std::string& name) {
  const StoredTensor* tensor = checkpoint_.Find(name);
  if (tensor != nullptr && used_.insert(tensor).second) {
    ++totals_.tensors;
    totals_.bytes += static_cast<int64_t>(tensor->view.bytes.size());
  }
  return tensor;
}

// What belongs to a missing weight is not reported a second time as unexpected.
void Matcher::UseSiblings(const std::string& name) {
  for (const char* part : {"scale", "weight_scale", "weight_offset", "scale_bias"}) {
    Use(SiblingName(name, part));
  }
}

const StoredTensor* Matcher::UseRequired(const std::string& name, std::span<const int64_t> shape) {
  const StoredTensor* tensor = Use(name);
  if (tensor == nullptr) {
    problems_.Add(Kind::kMissing, fmt::format("{} (expected {})", name, io::ShapeText(shape)));
  }
  return tensor;
}

void Matcher::HasType(const StoredTensor& tensor, std::initializer_list<DType> accepted) {
  std::vector<std::string_view> names;
  for (const DType type : accepted) {
    if (tensor.view.type == type) return;
    names.push_back(tensor::Name(type));
  }
  problems_.Add(Kind::kWrongType,
                fmt::format("{} is {} (expected {})", Where(tensor), tensor::Name(tensor.view.type),
                            fmt::join(names, " or ")));
}

void Matcher::HasShape(const StoredTensor& tensor, const std::vector<int64_t>& shape) {
  if (tensor.view.shape == shape) return;
  problems_.Add(Kind::kWrongShape,
                fmt::format("{} is {} (expected {})", Where(tensor),
                            io::ShapeText(tensor.view.shape), io::ShapeText(shape)));
}

// One number per channel, written as a column or as a list.
void Matcher::HasChannelShape(const StoredTensor& tensor, int64_t channels) {
  if (tensor.view.shape != std::vector<int64_t>{channels}) HasShape(tensor, {channels, 1});
}

void Matcher::Unsupported(const StoredTensor& tensor, std::string_view why) {
  problems_.Add(Kind::kUnsupported, fmt::format("{} {}", Where(tensor), why));
}

void Matcher::RefuseUnused(std::string_view prefix) {
  for (const StoredTensor& tensor : checkpoint_.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    if (!used_.contains(&tensor)) problems_.Add(Kind::kUnexpected, Where(tensor));
  }
}

}  // namespace

absl::StatusOr<Inventory> TakeInventory(const Checkpoint& checkpoint,
                                        std::span<const TensorSlot> main_slots,
                                        std::span<const TensorSlot> drafter_slots) {
  Matcher matcher(checkpoint);
  Inventory inventory;
  inventory.main = matcher.Fill(main_slots, inventory.main_totals);
  inventory.drafter = matcher.Fill(drafter_slots, inventory.drafter_totals);
  matcher.RefuseUnused("");
  RETURN_IF_ERROR(matcher.status());
  return inventory;
}

absl::StatusOr<Inventory> TakeDrafterInventory(const Checkpoint& checkpoint,
                                               std::span<const TensorSlot> drafter_slots) {
  Matcher matcher(checkpoint);
  Inventory inventory;
  inventory.drafter = matcher.Fill(drafter_slots, inventory.drafter_totals);
  matcher.RefuseUnused("mtp.");
  RETURN_IF_ERROR(matcher.status());
  return inventory;
}

kernels::LinearSource SourceOf(const FilledSlot& filled, int64_t group) {
  const TensorSlot& slot = *filled.slot;
  const int64_t rows = slot.out() / slot.groups;
  const int64_t first_row = group * rows;
  const auto weight_bytes = static_cast<int64_t>(filled.weight->view.bytes.size());
  kernels::LinearSource source;
  source.format = filled.format;
  source.out = rows;
  source.in = slot.in();
  source.weight = filled.weight->view.bytes.data() + weight_bytes / slot.groups * group;
  source.weight_type = filled.weight->view.type;
  if (filled.scale == nullptr) return source;
  const int64_t scale_row =
      filled.format == WeightFormat::kFp8Block ? first_row / kFp8Block : first_row;
  const int64_t scale_rows = filled.scale->view.shape[0];
  const auto scale_bytes = static_cast<int64_t>(filled.scale->view.bytes.size());
  source.scale = filled.scale->view.bytes.data() + scale_bytes / scale_rows * scale_row;
  source.scale_type = filled.scale->view.type;
  return source;
}

}  // namespace fulgur::model
