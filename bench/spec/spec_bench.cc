// What speculation gains and what it costs, as ratios to plain decoding within one run. The engine
// is the real one; the arms of a comparison take turns in short windows. Prints tables in Markdown.
#include <algorithm>
#include <iostream>
#include <map>

#include "CLI/CLI.hpp"
#include "base/machine.h"
#include "fmt/format.h"
#include "parts.h"

namespace fulgur::bench_spec {

ModelSource DemoMtp(const BenchOptions& options) {
  return {.folder = options.demo,
          .random_drafter = false,
          .drafter_folder = options.mtp,
          .kind = model::DrafterKind::kMtp};
}

ModelSource RandomDspark(const BenchOptions& options) { return {.folder = options.demo}; }

ModelSource DemoDspark(const BenchOptions& options) {
  return {.folder = options.demo, .random_drafter = false, .drafter_folder = options.dspark};
}

ModelSource Toy(const BenchOptions& options) {
  constexpr int64_t kPublishedDrafts = 7;
  return {.folder = options.toy, .random_main = true, .block_size = kPublishedDrafts};
}

namespace {

using Part = absl::Status (*)(const BenchOptions&);

const std::map<std::string, Part>& Parts() {
  static const std::map<std::string, Part> parts = {{"never-slower", NeverSlower},
                                                    {"gain", Gain},
                                                    {"published", Published},
                                                    {"skipped", Skipped},
                                                    {"planner", PlannerCost}};
  return parts;
}

int Main(int argc, char** argv) {
  BenchOptions options;
  std::vector<std::string> wanted = {"gain", "never-slower", "skipped", "published", "planner"};
  CLI::App app("Speculation against plain decoding");
  app.add_option("--demo", options.demo, "the demo model")->capture_default_str();
  app.add_option("--dspark", options.dspark,
                 "folder with trained DSpark stages for it; default: its own");
  app.add_option("--mtp", options.mtp, "folder with a trained MTP block for it")
      ->capture_default_str();
  app.add_option("--mtp-drafts", options.mtp_drafts, "drafts per round of the MTP block")
      ->check(CLI::Range(1, 7))
      ->capture_default_str();
  app.add_option("--toy", options.toy, "folder with the config.json of a larger model")
      ->capture_default_str();
  app.add_option("--prompts", options.prompts)->capture_default_str();
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--thread-time", options.thread_time,
               "measure the thread's own time instead of the wall clock, for a busy machine; only "
               "with one thread");
  app.add_flag("--quick", options.quick, "fewer cells and rounds: whether it runs at all");
  app.add_option("--parts", wanted, "gain, never-slower, skipped, published, planner")
      ->delimiter(',')
      ->check(CLI::IsMember(Parts()));
  CLI11_PARSE(app, argc, argv);
  if (options.thread_time && options.threads > 1) {
    std::cerr << "--thread-time goes with --threads 1: it sees one thread's time only\n";
    return 1;
  }
  fmt::print("{}; {} thread(s)\n", base::DescribeMachine(base::DetectMachine()), options.threads);
  for (const std::string& part : wanted) {
    const absl::Status status = Parts().at(part)(options);
    if (status.ok()) continue;
    std::cerr << part << ": " << status.message() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace fulgur::bench_spec

int main(int argc, char** argv) { return fulgur::bench_spec::Main(argc, argv); }
