// What `fulgur bench run` is asked to do: scenarios, the server, and how to measure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/load/arrivals.h"
#include "bench/load/dataset.h"
#include "bench/load/http_client.h"
#include "bench/load/lengths.h"
#include "bench/load/load_spec.h"
#include "bench/load/prompt_text.h"
#include "bench/load/recorder.h"
#include "bench/load/request_body.h"
#include "bench/load/workload.h"
#include "bench/stats/goodput.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {

// One kind of load; with a concurrency it becomes a cell.
struct Scenario {
  std::string id = "custom";
  std::vector<LengthPairLaw> lengths = {{.input = {.mean = 550.0}, .output = {}, .weight = 1.0}};
  std::optional<int64_t> requests;    // sessions; absent: max(10, 2 x concurrency)
  int64_t min_requests_per_slot = 0;  // raises `requests` in corrected runs
  std::optional<double> duration_s;
  std::vector<int64_t> concurrency;  // empty: that of the run
  LoadMode mode = LoadMode::kClosed;
  std::optional<double> rate;  // of open loops and users
  ArrivalLaw arrivals;
  PrefixSpec prefix;
  bool warm_prefixes = false;  // one short request a group before the measurement
  TurnSpec turns;
  std::optional<int64_t> pool;
  PoolOrder order = PoolOrder::kSequential;
  Corpus corpus = Corpus::kWords;
  std::string dataset;  // "": made up; "natural": shipped questions; else a file
  TraceOptions trace;
  int64_t trace_block_tokens = 512;  // text that one hash id of a trace stands for
  bool fixed_schedule = true;        // of data with time stamps
  std::optional<int64_t> default_output_tokens;
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();
};

enum class CellOrder { kScenarioMajor, kConcurrencyMajor, kRandom };

// How folders of cells are called below the artifact folder.
enum class FolderLayout {
  kSingle,  // one cell: the folder itself
  kSweep,   // concurrency_<C>
  kRates,   // rate_<R>
  kSuite,   // <scenario>-c<C>
};

enum class ExportLevel { kSummary, kRecords };

struct RunOptions {
  std::string suite_name;
  std::vector<Scenario> scenarios;
  std::vector<int64_t> concurrency = {1};
  CellOrder order = CellOrder::kScenarioMajor;
  bool corrected = true;  // false: as the published runs did it, defects included

  // The server.
  std::vector<std::string> urls = {"http://localhost:8000"};
  std::string endpoint_path;  // empty: of the endpoint's kind
  std::vector<std::pair<std::string, std::string>> headers;
  HttpClientOptions http;
  double wait_for_server_s = 0.0;
  bool server_metrics = true;
  bool reset_prefix_cache = false;

  // Requests. `shape.model` empty: the only one that the server has.
  RequestShape shape;
  std::string tokenizer;      // a tokenizer.json or its folder; "" or "server": none
  bool wire_lengths = false;  // input lengths as the server counts them, template included
  TokenSource token_source = TokenSource::kUsage;
  bool input_from_usage = false;
  int64_t seed = 42;

  // Sending.
  std::optional<int64_t> warmup_requests;  // absent: max(4, concurrency) in corrected runs
  std::optional<int64_t> warmup_concurrency;
  bool drain_after_warmup = false;
  std::optional<bool> stagger;
  double ramp_s = 0.0;
  int64_t prefill_concurrency = 0;
  double grace_s = 30.0;
  double timeout_s = 3600.0;
  double cancellation_percent = 0.0;
  double cancellation_delay_s = 0.0;
  std::optional<double> failure_limit;  // absent: 10 % in corrected runs
  std::string session_header;
  double max_client_lag_ms = 5.0;  // a cell is not valid if this program was later at p99

  // Results.
  std::vector<Objective> objectives;
  std::string artifact_dir = "artifacts";
  FolderLayout layout = FolderLayout::kSingle;
  std::string export_prefix;  // instead of "profile_export": file names
  ExportLevel export_level = ExportLevel::kRecords;
  bool write_inputs = true;
  bool write_outputs = false;
  bool force = false;  // repeat cells that are there already
  double cooldown_s = 0.0;
  double slice_s = 0.0;  // metrics of stretches of this length besides; 0: none
  int32_t repetitions = 1;
  double confidence_level = 0.95;  // of intervals over repetitions
  bool find_max_rate = false;      // RunBench() does not; FindMaxRate() does
  double slo_attainment = 0.99;    // part of the requests that must meet the objectives then
  bool keep_for_vllm = false;
  bool terminal = false;     // the display may go back to the line's start
  bool silent = false;       // no display
  std::string command_line;  // without secrets
  std::string version;       // of this program
};

// Scenarios of a suite file or of a shipped one.
struct Suite {
  std::string name;
  std::vector<Scenario> scenarios;
  std::vector<int64_t> concurrency;
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();
  std::optional<int64_t> seed;
  std::optional<CellOrder> order;
};

// Reads a suite ("fulgur-suite/1"). Errors name file and field.
absl::StatusOr<Suite> ParseSuite(std::string_view json, const std::string& source);

// "seed", "smoke", "natural", "prefix90", "nightly" or a file.
absl::StatusOr<Suite> LoadSuite(const std::string& name);

// The id of a scenario at one of several rates: "custom-rate2.5".
std::string RateId(const std::string& id, double rate);

// Names of the shipped suites with one sentence each.
std::vector<std::pair<std::string, std::string>> ShippedSuites();

}  // namespace fulgur::bench
