// Takes requests that ended: counts their tokens, adds them to the metrics and writes their line.
// All on a thread of its own, so that none of it delays a socket.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/load/exchange.h"
#include "bench/results/aiperf_writer.h"
#include "bench/stats/cell.h"
#include "bench/stats/goodput.h"
#include "bench/stats/run_metrics.h"
#include "text/tokenizer.h"

namespace fulgur::bench {

// Who counts output tokens. The other one stands in where the first is silent.
enum class TokenSource { kUsage, kTokenizer };

struct RecorderOptions {
  TokenSource source = TokenSource::kUsage;
  bool input_from_usage = false;  // input lengths too
  std::optional<text::Tokenizer> tokenizer;
  std::vector<Objective> objectives;
  std::filesystem::path records;                             // profile_export.jsonl; empty: none
  std::filesystem::path outputs;                             // texts of the answers; empty: none
  bool keep_for_vllm = false;                                // RecordedRun::lines
  int64_t slice_ns = 0;                                      // RecordedRun::slices; 0: none
  const std::atomic<int64_t>* profiling_start_ns = nullptr;  // where the first slice begins
};

// One request as vLLM's result file lists it, in seconds.
struct VllmLine {
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  double start_s = 0.0;
  double ttft_s = 0.0;
  double latency_s = 0.0;
  std::vector<double> gaps_s;
  std::string error;
};

struct RecordedRun {
  explicit RecordedRun(const std::vector<Objective>& objectives)
      : profiling(objectives), warmup({}) {}

  RunAccumulator profiling;
  RunAccumulator warmup;
  std::map<int64_t, RunAccumulator> slices;  // by number: what was sent in that stretch of time
  std::vector<ErrorGroup> errors;
  std::vector<VllmLine> lines;
  int64_t valid_requests = 0;
  int64_t without_usage = 0;      // valid ones
  int64_t without_tokens = 0;     // valid ones that nobody could count
  int64_t large_first_chunk = 0;  // valid ones whose first frame brought many tokens
  int64_t merged_frames = 0;      // output frames that came in one read with the one before
  int64_t output_frames = 0;
  int64_t repeated = 0;  // sent again, because an idle connection had been closed
  int64_t cancelled_by_end = 0;
  absl::Status file_status;  // the first thing that could not be written
};

class Recorder {
 public:
  static absl::StatusOr<std::unique_ptr<Recorder>> Create(RecorderOptions options);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Any thread; does not block.
  void Push(FinishedRequest request);

  // Waits for everything pushed. Once, and last.
  RecordedRun Finish();

 private:
  Recorder(RecorderOptions options, std::optional<RecordWriter> writer);

  void Work();
  void Record(FinishedRequest request);
  void CountTokens(FinishedRequest& request) const;
  void AddError(const RequestError& error);
  void Observe(const FinishedRequest& request);
  void AddToSlice(const RequestRecord& record);
  void WriteOutput(const FinishedRequest& request);

  const RecorderOptions options_;
  std::optional<RecordWriter> writer_;
  std::ofstream outputs_;
  RecordedRun run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FinishedRequest> queue_;  // guarded by mutex_
  bool closing_ = false;                // guarded by mutex_
  std::thread thread_;
};

// 1 - distinct runs of eight words / all such runs: text that repeats itself after a suppressed end
// is drafted more easily than real text. None for short texts.
std::optional<double> Repetition(std::string_view text);

}  // namespace fulgur::bench
