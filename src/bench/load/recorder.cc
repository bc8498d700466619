#include "bench/load/recorder.h"

#include <functional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

constexpr size_t kMaxErrorGroups = 1000;
constexpr int64_t kLargeFirstChunk = 16;
constexpr size_t kRunOfWords = 8;

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t start = text.find_first_not_of(" \n\t\r");
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const size_t end = text.find_first_of(" \n\t\r");
    words.push_back(text.substr(0, end));
    text.remove_prefix(words.back().size());
  }
  return words;
}

VllmLine ToVllmLine(const RequestRecord& record) {
  VllmLine line;
  line.input_tokens = record.usage.prompt_tokens.value_or(record.input_tokens.value_or(0));
  line.start_s = static_cast<double>(record.start_ns) / 1e9;
  int64_t last = 0;
  for (const Frame& frame : record.frames) {
    if (!frame.is_output()) continue;
    if (last == 0)
      line.ttft_s = static_cast<double>(frame.arrival_ns - record.start_ns) / 1e9;
    else
      line.gaps_s.push_back(static_cast<double>(frame.arrival_ns - last) / 1e9);
    last = frame.arrival_ns;
  }
  if (record.error) {
    line.error = record.error->type;
    return line;
  }
  line.output_tokens = record.output_tokens.value_or(0);
  line.latency_s = static_cast<double>(last - record.start_ns) / 1e9;
  return line;
}

}  // namespace

std::optional<double> Repetition(std::string_view text) {
  const std::vector<std::string_view> words = Words(text);
  if (words.size() < 4 * kRunOfWords) return std::nullopt;
  std::unordered_set<std::string_view> distinct;
  const size_t runs = words.size() - kRunOfWords + 1;
  for (size_t i = 0; i < runs; ++i) {
    const char* begin = words[i].data();
    const std::string_view last = words[i + kRunOfWords - 1];
    distinct.insert({begin, static_cast<size_t>(last.data() + last.size() - begin)});
  }
  return 1.0 - static_cast<double>(distinct.size()) / static_cast<double>(runs);
}

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Create(RecorderOptions options) {
  std::optional<RecordWriter> writer;
  if (!options.records.empty()) {
    ASSIGN_OR_RETURN(writer, RecordWriter::Open(options.records));
  }
  return std::unique_ptr<Recorder>(new Recorder(std::move(options), std::move(writer)));
}

Recorder::Recorder(RecorderOptions options, std::optional<RecordWriter> writer)
    : options_(std::move(options)), writer_(std::move(writer)), run_(options_.objectives) {
  if (!options_.outputs.empty()) outputs_.open(options_.outputs, std::ios::binary);
  thread_ = std::thread([this] { Work(); });
}

Recorder::~Recorder() {
  if (thread_.joinable()) Finish();
}

void Recorder::Push(FinishedRequest request) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(request));
  }
  changed_.notify_one();
}

RecordedRun Recorder::Finish() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (writer_) run_.file_status.Update(writer_->Close());
  return std::move(run_);
}

void Recorder::AddToSlice(const RequestRecord& record) {
  if (record.warmup) return;
  const int64_t offset_ns = std::max<int64_t>(0, record.start_ns - *options_.profiling_start_ns);
  const auto [slice, is_new] =
      run_.slices.try_emplace(offset_ns / options_.slice_ns, std::vector<Objective>());
  slice->second.Add(record);
}

void Recorder::Work() {
  std::vector<FinishedRequest> batch;
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      batch.swap(queue_);
      last = closing_;
    }
    for (FinishedRequest& request : batch) Record(std::move(request));
    batch.clear();
  }
}

void Recorder::Record(FinishedRequest request) {
  CountTokens(request);
  request.record.output_repetition =
      Repetition(request.text.empty() ? request.reasoning : request.text);
  Observe(request);
  if (writer_) run_.file_status.Update(writer_->Append(request.record));
  if (outputs_.is_open()) WriteOutput(request);
  if (options_.keep_for_vllm && !request.record.warmup) {
    run_.lines.push_back(ToVllmLine(request.record));
  }
  if (options_.slice_ns > 0) AddToSlice(request.record);
  if (!request.record.warmup) return run_.profiling.Add(request.record);
  request.record.warmup = false;
  run_.warmup.Add(request.record);
}

void Recorder::CountTokens(FinishedRequest& request) const {
  RequestRecord& record = request.record;
  const Usage& usage = record.usage;
  if (options_.input_from_usage || !record.input_tokens) {
    if (usage.prompt_tokens) record.input_tokens = usage.prompt_tokens;
  }
  const bool use_usage = usage.completion_tokens.has_value() &&
                         (options_.source == TokenSource::kUsage || !options_.tokenizer);
  if (use_usage) {
    record.output_tokens = usage.completion_tokens;
    record.reasoning_tokens = usage.reasoning_tokens;
    if (!record.reasoning_tokens && request.text.empty() && !request.reasoning.empty()) {
      record.reasoning_tokens = record.output_tokens;
    }
    return;
  }
  if (!options_.tokenizer) return;
  const text::EncodeOptions plain{.match_added_tokens = false};
  const auto reasoning =
      static_cast<int64_t>(options_.tokenizer->CountTokens(request.reasoning, plain));
  record.output_tokens =
      reasoning + static_cast<int64_t>(options_.tokenizer->CountTokens(request.text, plain));
  record.reasoning_tokens = reasoning;
}

void Recorder::Observe(const FinishedRequest& request) {
  const RequestRecord& record = request.record;
  if (request.repeated) ++run_.repeated;
  if (record.warmup) return;
  if (record.cancelled && !record.error) ++run_.cancelled_by_end;
  if (record.error) AddError(*record.error);
  if (!record.valid()) return;
  ++run_.valid_requests;
  if (!record.usage.completion_tokens) ++run_.without_usage;
  if (!record.output_tokens) ++run_.without_tokens;
  int64_t last = 0;
  for (const Frame& frame : record.frames) {
    if (!frame.is_output()) continue;
    if (last == 0 && frame.tokens.value_or(0) > kLargeFirstChunk) ++run_.large_first_chunk;
    if (frame.arrival_ns == last) ++run_.merged_frames;
    last = frame.arrival_ns;
    ++run_.output_frames;
  }
}

// A server may put something different into every message: only so many are kept apart.
void Recorder::AddError(const RequestError& error) {
  for (ErrorGroup& group : run_.errors) {
    if (group.code == error.code && group.type == error.type &&
        (group.message == error.message || run_.errors.size() >= kMaxErrorGroups)) {
      ++group.count;
      return;
    }
  }
  run_.errors.push_back({error.code, error.type, error.message, 1});
}

void Recorder::WriteOutput(const FinishedRequest& request) {
  nlohmann::ordered_json line{{"session_num", request.record.session},
                              {"conversation_id", request.record.conversation_id},
                              {"turn_index", request.record.turn},
                              {"x_request_id", request.record.request_id},
                              {"benchmark_phase", request.record.warmup ? "warmup" : "profiling"},
                              {"response_text", request.text}};
  if (!request.reasoning.empty()) line["reasoning_text"] = request.reasoning;
  outputs_ << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace fulgur::bench
