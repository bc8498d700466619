#include "model/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/team.h"
#include "fmt/format.h"
#include "io/json.h"
#include "model/checkpoint_problems.h"
#include "model/drafter_source.h"
#include "model/tensor_map.h"
#include "model/weight_plan.h"
#include "tensor/numbers.h"

namespace fulgur::model {
namespace {

using tensor::DType;
using Kind = CheckpointProblems::Kind;

constexpr int64_t kPartBytes = int64_t{4} << 20;        // what a worker packs at a time
constexpr int64_t kReadAheadBytes = int64_t{64} << 20;  // lazy: announced to the kernel
constexpr int64_t kReadPieceBytes = int64_t{64} << 20;  // prefetch: read between looks at the stop

template <typename T>
T Load(const std::byte* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

float LoadFloat(const io::TensorView& view, int64_t index) {
  const std::byte* bytes = view.bytes.data();
  if (view.type == DType::kF32) return Load<float>(bytes, index);
  if (view.type == DType::kF16) return tensor::HalfToFloat(Load<uint16_t>(bytes, index));
  return tensor::ToFloat(tensor::BFloat16{Load<uint16_t>(bytes, index)});
}

int64_t Elements(const io::TensorView& view) {
  return static_cast<int64_t>(view.bytes.size()) / tensor::ByteSize(view.type);
}

// One tensor to pack and the file bytes that it is packed from.
struct Job {
  const PlannedTensor* planned = nullptr;
  FilledSlot filled;
  int file = 0;
  int64_t begin = 0;  // in the file
  int64_t end = 0;
  int64_t start_bytes = 0;  // bytes of the jobs before this one

  int64_t bytes() const { return end - begin; }
  int64_t parts() const { return std::max<int64_t>(1, (bytes() + kPartBytes - 1) / kPartBytes); }
};

struct Unit {
  size_t job = 0;
  int64_t part = 0;
};

// Packs the jobs of one checkpoint; workers take units in file order.
class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const WeightPlan& plan, std::span<const FilledSlot> filled,
         const LoadOptions& options);

  absl::Status Run();

 private:
  void MakeJobs(const WeightPlan& plan, std::span<const FilledSlot> filled);
  void RunEagerly(base::WorkerTeam& team);
  void RunPrefetched(base::WorkerTeam& team);
  void RunUnits(base::WorkerTeam& team, size_t last);
  void RunUnit(const Unit& unit);
  void Fill(const Job& job, const base::WorkerRank& part);
  void CopyFloats(const Job& job, const base::WorkerRank& part);
  void CopyTable(const Job& job);
  void CheckOffset(const Job& job);
  void FinishJob(const Job& job);
  void ReadAhead(const Job& job);
  void ReadFile(const io::MappedFile& file, int64_t begin, int64_t end);
  void Refuse(const StoredTensor& tensor, std::string_view why);

  const io::MappedFile& FileOf(const Job& job) const {
    return checkpoint_.files()[static_cast<size_t>(job.file)].file();
  }

  const Checkpoint& checkpoint_;
  const LoadOptions& options_;
  std::vector<Job> jobs_;
  std::vector<Unit> units_;
  std::unique_ptr<std::atomic<int64_t>[]> parts_left_;  // of each job
  std::unique_ptr<std::atomic<int64_t>[]> jobs_left_;   // of each file
  std::atomic<size_t> next_unit_{0};
  int64_t total_bytes_ = 0;

  std::mutex mutex_;  // guards everything below
  int64_t done_bytes_ = 0;
  size_t announced_jobs_ = 0;
  CheckpointProblems problems_;
  absl::Status read_error_;
};

Loader::Loader(const Checkpoint& checkpoint, const WeightPlan& plan,
               std::span<const FilledSlot> filled, const LoadOptions& options)
    : checkpoint_(checkpoint), options_(options) {
  MakeJobs(plan, filled);
  parts_left_ = std::make_unique<std::atomic<int64_t>[]>(jobs_.size());
  jobs_left_ = std::make_unique<std::atomic<int64_t>[]>(checkpoint.files().size());
  for (size_t i = 0; i < jobs_.size(); ++i) {
    Job& job = jobs_[i];
    job.start_bytes = total_bytes_;
    total_bytes_ += job.bytes();
    parts_left_[i] = job.parts();
    ++jobs_left_[static_cast<size_t>(job.file)];
    for (int64_t part = 0; part < job.parts(); ++part) units_.push_back({i, part});
  }
}

void Loader::MakeJobs(const WeightPlan& plan, std::span<const FilledSlot> filled) {
  for (const PlannedTensor& planned : plan.tensors()) {
    Job job;
    job.planned = &planned;
    job.filled = filled[planned.source_index];
    job.file = job.filled.weight->file;
    const std::span<const std::byte> bytes = job.filled.weight->view.bytes;
    const int64_t size = static_cast<int64_t>(bytes.size()) / planned.slot->groups;
    job.begin = bytes.data() - FileOf(job).bytes().data() + size * planned.group;
    job.end = job.begin + size;
    jobs_.push_back(job);
  }
  std::sort(jobs_.begin(), jobs_.end(), [](const Job& a, const Job& b) {
    return std::pair(a.file, a.begin) < std::pair(b.file, b.begin);
  });
}

absl::Status Loader::Run() {
  base::WorkerTeam team(options_.num_threads);
  switch (options_.strategy) {
    case LoadStrategy::kLazy:
      RunUnits(team, units_.size());
      break;
    case LoadStrategy::kEager:
      RunEagerly(team);
      break;
    case LoadStrategy::kPrefetch:
      RunPrefetched(team);
      break;
  }
  RETURN_IF_ERROR(read_error_);
  return problems_.ToStatus(checkpoint_.folder());
}

void Loader::RunEagerly(base::WorkerTeam& team) {
  for (size_t unit = 0; unit < units_.size();) {
    const Job& first = jobs_[units_[unit].job];
    const io::MappedFile& file = FileOf(first);
    team.Run([&](const base::WorkerRank& worker) {
      const auto [begin, end] = worker.Share(file.size(), kPartBytes);
      ReadFile(file, begin, end);
    });
    while (unit < units_.size() && jobs_[units_[unit].job].file == first.file) ++unit;
    RunUnits(team, unit);
  }
}

void Loader::RunPrefetched(base::WorkerTeam& team) {
  std::jthread reader([this](const std::stop_token& stop) {
    for (const io::SafetensorsFile& file : checkpoint_.files()) {
      const int64_t size = file.file().size();
      for (int64_t begin = 0; begin < size && !stop.stop_requested(); begin += kReadPieceBytes) {
        ReadFile(file.file(), begin, std::min(begin + kReadPieceBytes, size));
      }
    }
  });
  RunUnits(team, units_.size());
}

// Units before `last`; those that are done already stay done.
void Loader::RunUnits(base::WorkerTeam& team, size_t last) {
  team.Run([&](const base::WorkerRank&) {
    for (size_t unit = next_unit_++; unit < last; unit = next_unit_++) RunUnit(units_[unit]);
  });
  next_unit_ = last;  // the last look of every worker counted on
}

void Loader::RunUnit(const Unit& unit) {
  const Job& job = jobs_[unit.job];
  if (options_.strategy == LoadStrategy::kLazy && unit.part == 0) ReadAhead(job);
  Fill(job, base::WorkerRank(static_cast<int>(unit.part), static_cast<int>(job.parts()), nullptr));
  if (--parts_left_[unit.job] == 0) FinishJob(job);
}

void Loader::Fill(const Job& job, const base::WorkerRank& part) {
  const PlannedTensor& planned = *job.planned;
  switch (planned.slot->kind) {
    case TensorKind::kLinear:
    case TensorKind::kFloatLinear:
      kernels::Pack(SourceOf(job.filled, planned.group), planned.target, planned.to, part);
      if (part.rank() == 0) CheckOffset(job);
      break;
    case TensorKind::kVector:
    case TensorKind::kEmbedding:
      CopyFloats(job, part);
      break;
    case TensorKind::kExpertTable:
      if (part.rank() == 0) CopyTable(job);
      break;
  }
}

void Loader::CopyFloats(const Job& job, const base::WorkerRank& part) {
  const io::TensorView& view = job.filled.weight->view;
  const auto [begin, end] = part.Share(Elements(view));
  std::byte* to = job.planned->to.data();
  if (job.planned->as_bf16) {
    std::memcpy(to + 2 * begin, view.bytes.data() + 2 * begin,
                static_cast<size_t>(2 * (end - begin)));
    return;
  }
  auto* floats = reinterpret_cast<float*>(to);
  for (int64_t i = begin; i < end; ++i) floats[i] = LoadFloat(view, i);
}

void Loader::CopyTable(const Job& job) {
  const io::TensorView& view = job.filled.weight->view;
  const std::byte* bytes = view.bytes.data();
  auto* to = reinterpret_cast<int32_t*>(job.planned->to.data());
  const int64_t experts = checkpoint_.config().num_experts;
  for (int64_t i = 0; i < Elements(view); ++i) {
    const int64_t expert =
        view.type == DType::kI64 ? Load<int64_t>(bytes, i) : Load<int32_t>(bytes, i);
    if (expert < 0 || expert >= experts) {
      Refuse(*job.filled.weight,
             fmt::format("names expert {}; accepted are 0 to {}", expert, experts - 1));
      return;
    }
    to[i] = static_cast<int32_t>(expert);
  }
}

void Loader::CheckOffset(const Job& job) {
  const StoredTensor* offset = job.filled.offset;
  if (offset == nullptr || job.planned->group != 0) return;
  for (int64_t i = 0; i < Elements(offset->view); ++i) {
    if (LoadFloat(offset->view, i) == 0.0F) continue;
    Refuse(*offset, "is not zero; only symmetric quantisation is supported");
    return;
  }
}

void Loader::Refuse(const StoredTensor& tensor, std::string_view why) {
  const std::lock_guard lock(mutex_);
  problems_.Add(Kind::kUnsupported, fmt::format("{} in {} {}", io::Shortened(tensor.view.name),
                                                checkpoint_.FileOf(tensor), why));
}

void Loader::FinishJob(const Job& job) {
  FileOf(job).Drop(job.begin, job.end);
  if (--jobs_left_[static_cast<size_t>(job.file)] == 0) FileOf(job).Drop(0, FileOf(job).size());
  const std::lock_guard lock(mutex_);
  done_bytes_ += job.bytes();
  if (options_.progress) options_.progress(done_bytes_, total_bytes_);
}

void Loader::ReadAhead(const Job& job) {
  const std::lock_guard lock(mutex_);
  const int64_t until = job.start_bytes + job.bytes() + kReadAheadBytes;
  for (; announced_jobs_ < jobs_.size(); ++announced_jobs_) {
    const Job& next = jobs_[announced_jobs_];
    if (next.start_bytes >= until) break;
    FileOf(next).WillNeed(next.begin, next.end);
  }
}

void Loader::ReadFile(const io::MappedFile& file, int64_t begin, int64_t end) {
  const absl::Status status = file.ReadThrough(begin, end);
  if (status.ok()) return;
  const std::lock_guard lock(mutex_);
  read_error_.Update(status);
}

std::vector<PlanSource> SourcesOf(std::span<const FilledSlot> filled) {
  std::vector<PlanSource> sources;
  sources.reserve(filled.size());
  for (const FilledSlot& slot : filled) {
    sources.push_back({slot.slot, slot.format, slot.weight->view.type});
  }
  return sources;
}

// Packs the tensors that fill `filled` and points the slots' destinations at them.
absl::StatusOr<std::unique_ptr<WeightStorage>> LoadSlots(const Checkpoint& checkpoint,
                                                         std::span<const FilledSlot> filled,
                                                         const LoadOptions& options) {
  WeightPlan plan(SourcesOf(filled), options.precision);
  ASSIGN_OR_RETURN(std::unique_ptr<WeightArena> arena, WeightArena::Allocate(plan.arena_bytes()));
  plan.Place(arena->data());
  RETURN_IF_ERROR(Loader(checkpoint, plan, filled, options).Run());
  return arena;
}

// The slots of everything that a checkpoint must hold.
struct CheckpointSlots {
  std::vector<TensorSlot> main;
  std::vector<TensorSlot> drafter;
  FoundDrafter found;
};

// The configuration of a checkpoint's own drafter; that of a checkpoint without one stays.
ModelConfig WithDrafter(ModelConfig config, const FoundDrafter& found) {
  config.drafter = found.kind;
  config.num_draft_blocks = found.blocks;
  return config;
}

absl::StatusOr<CheckpointSlots> SlotsOf(const Checkpoint& checkpoint, Weights& weights) {
  CheckpointSlots slots;
  ASSIGN_OR_RETURN(slots.found, FindDrafter(checkpoint));
  slots.main = MainTensors(checkpoint.config(), weights);
  slots.drafter = DrafterTensors(WithDrafter(checkpoint.config(), slots.found), weights.drafter);
  return slots;
}

absl::StatusOr<DrafterWeights> LoadDrafter(const Checkpoint& checkpoint,
                                           const LoadOptions& options) {
  DrafterWeights weights;
  ASSIGN_OR_RETURN(const FoundDrafter found, FindDrafter(checkpoint));
  const std::vector<TensorSlot> slots =
      DrafterTensors(WithDrafter(checkpoint.config(), found), weights);
  ASSIGN_OR_RETURN(const Inventory inventory, TakeDrafterInventory(checkpoint, slots));
  ASSIGN_OR_RETURN(weights.storage, LoadSlots(checkpoint, inventory.drafter, options));
  return weights;
}

}  // namespace

absl::StatusOr<CheckpointSummary> Summarize(const Checkpoint& checkpoint, Precision precision) {
  Weights weights;
  ASSIGN_OR_RETURN(const CheckpointSlots slots, SlotsOf(checkpoint, weights));
  ASSIGN_OR_RETURN(const Inventory inventory, TakeInventory(checkpoint, slots.main, slots.drafter));
  return CheckpointSummary{
      .main = inventory.main_totals,
      .draft_kind = slots.found.kind,
      .draft_blocks = slots.found.blocks,
      .drafts = inventory.drafter_totals,
      .weight_bytes = WeightPlan(SourcesOf(inventory.main), precision).arena_bytes(),
      .drafter_bytes = WeightPlan(SourcesOf(inventory.drafter), precision).arena_bytes()};
}

absl::StatusOr<int64_t> DrafterBytes(const Checkpoint& checkpoint, Precision precision) {
  DrafterWeights weights;
  ASSIGN_OR_RETURN(const FoundDrafter found, FindDrafter(checkpoint));
  const std::vector<TensorSlot> slots =
      DrafterTensors(WithDrafter(checkpoint.config(), found), weights);
  ASSIGN_OR_RETURN(const Inventory inventory, TakeDrafterInventory(checkpoint, slots));
  return WeightPlan(SourcesOf(inventory.drafter), precision).arena_bytes();
}

absl::StatusOr<Weights> LoadWeights(const Checkpoint& checkpoint, const LoadOptions& options) {
  Weights weights;
  ASSIGN_OR_RETURN(const CheckpointSlots slots, SlotsOf(checkpoint, weights));
  ASSIGN_OR_RETURN(const Inventory inventory, TakeInventory(checkpoint, slots.main, slots.drafter));
  std::vector<FilledSlot> filled = inventory.main;
  const bool own_drafter = options.drafter == &checkpoint;
  if (own_drafter) std::ranges::copy(inventory.drafter, std::back_inserter(filled));
  ASSIGN_OR_RETURN(weights.storage, LoadSlots(checkpoint, filled, options));
  if (own_drafter) return weights;
  weights.drafter = DrafterWeights();
  if (options.drafter != nullptr) {
    ASSIGN_OR_RETURN(weights.drafter, LoadDrafter(*options.drafter, options));
  }
  return weights;
}

}  // namespace fulgur::model
