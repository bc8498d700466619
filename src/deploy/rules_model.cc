#include <filesystem>
#include <regex>

#include "deploy/rules.h"
#include "fmt/format.h"
#include "io/mapped_file.h"

namespace fulgur::deploy {
namespace {

namespace fs = std::filesystem;

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Which drafter a checkpoint holds: from its tensor index where that can be read, else from its
// name (the 0731 release has DSpark stages). Empty: not known.
std::string DrafterOf(const std::string& model) {
  const auto index =
      io::MappedFile::Open((fs::path(model) / "model.safetensors.index.json").string());
  if (index.ok()) {
    if (Contains(index->text(), "\"mtp.0.head.weight\"")) return "mtp";
    if (Contains(index->text(), "\"mtp.")) return "dspark";  // stages without a head of their own
  }
  const std::string name = Lower(fs::path(model).filename());
  if (Contains(name, "0731") || Contains(name, "dspark")) return "dspark";
  if (Contains(name, "mtp")) return "mtp";
  return "";
}

void CheckLoader(const ServeCommand& command, Reporter& report) {
  const nlohmann::json& loader = command.Json("model-loader-extra-config");
  const int line = command.LineOf("model-loader-extra-config");
  for (const auto& [key, value] : loader.items()) {
    if (key == "enable_multithread_load" || key == "enable_weights_track") {
      if (!value.is_boolean()) {
        report.Error("loader-bool-as-text", line,
                     fmt::format("{} must be a bool, got {}", key, value.dump()),
                     fmt::format("write {{\"{}\": true}} without quotes around true", key));
      }
    } else if (key == "num_threads") {
      if (!value.is_number_integer() || value.get<int64_t>() < 1) {
        report.Error("loader-threads", line,
                     fmt::format("num_threads must be a positive integer, got {}", value.dump()),
                     "write a number such as 128");
      }
    } else {
      report.Error("loader-unknown-key", line,
                   fmt::format("--model-loader-extra-config has no key '{}'", key),
                   "allowed are enable_multithread_load, num_threads and enable_weights_track");
    }
  }
  const bool multithread =
      loader.contains("enable_multithread_load") && loader["enable_multithread_load"] != false;
  const auto strategy = command.Text("safetensors-load-strategy");
  if (multithread && strategy && *strategy != "lazy") {
    report.Error("loader-prefetch-conflict", line,
                 fmt::format("enable_multithread_load does not support "
                             "--safetensors-load-strategy {}",
                             *strategy),
                 "remove one of the two: --model-loader-extra-config, or the strategy");
  }
}

// Known switches of additional-config and speculative-config that are true or false.
void CheckBooleans(const nlohmann::json& object, int line, Reporter& report) {
  static const std::set<std::string> kSwitches = {"enable_npugraph_ex",
                                                  "enable_static_kernel",
                                                  "fuse_norm_quant",
                                                  "fuse_qknorm_rope",
                                                  "fuse_muls_add",
                                                  "enable_cpu_binding",
                                                  "enable_shared_expert_dp",
                                                  "multistream_overlap_shared_expert",
                                                  "enable_dsa_cp",
                                                  "recompute_scheduler_enable",
                                                  "multistream_dsv4_dsa_overlap",
                                                  "enable_flashcomm1",
                                                  "enable_mlapo",
                                                  "enforce_eager"};
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) CheckBooleans(value, line, report);
    if (kSwitches.count(key) == 0 || !value.is_string()) continue;
    report.Error("bool-as-text", line,
                 fmt::format("{} is the text {}, not true or false", key, value.dump()),
                 fmt::format("write \"{}\": true or false, without quotes around the value", key));
  }
}

void CheckDrafter(const ServeCommand& command, Reporter& report) {
  const Speculation speculation = SpeculationOf(command);
  if (speculation.method.empty()) return;
  const int line = command.LineOf("speculative-config");
  const std::string drafter = DrafterOf(command.model);
  if (speculation.method == "mtp" && drafter == "dspark") {
    report.Error("mtp-on-dspark-checkpoint", line,
                 fmt::format("{} has DSpark stages and no MTP head (mtp.0.head.weight): loading "
                             "fails late, with a KeyError",
                             command.model),
                 R"(use {"method": "dspark", "num_speculative_tokens": 7})");
  }
  if (speculation.method == "dspark" && drafter == "mtp") {
    report.Error("dspark-on-mtp-checkpoint", line,
                 fmt::format("{} has an MTP head and no DSpark stages", command.model),
                 R"(use {"method": "mtp", "num_speculative_tokens": 1}, or the 0731 checkpoint)");
  }
  if (speculation.depth && *speculation.depth < 1) {
    report.Error("draft-length", line, "num_speculative_tokens must be above 0",
                 "write 1 for MTP, 5 to 7 for DSpark");
  }
  if (speculation.method == "dspark" && speculation.depth && *speculation.depth < 5) {
    report.Error("dspark-draft-length", line,
                 fmt::format("DSpark needs num_speculative_tokens of at least 5, its block, and "
                             "gets {}",
                             *speculation.depth),
                 "write 5 to 7 (block size: the checkpoint's config.json)");
  }
  if (speculation.method == "dspark" &&
      command.Json("additional-config").value("enable_dsa_cp", nlohmann::json()) == true) {
    report.Error("dspark-dsa-cp", command.LineOf("additional-config"),
                 "enable_dsa_cp is unstable together with DSpark: refused requests and lower "
                 "throughput were measured",
                 "remove \"enable_dsa_cp\": true");
  }
}

void CheckImage(const ServeCommand& command, Reporter& report) {
  if (command.image.empty() || SpeculationOf(command).method != "dspark") return;
  static const std::regex kVersion(R"(:v?(\d+)\.(\d+))");
  std::smatch found;
  if (!std::regex_search(command.image, found, kVersion)) return;  // named releases, nightly
  const int major = std::stoi(found[1]);
  const int minor = std::stoi(found[2]);
  if (major > 0 || minor >= 25) return;
  report.Error("image-without-dspark", command.image_line,
               fmt::format("{} knows no method dspark: that needs 0.25 or later", command.image),
               "use quay.io/ascend/vllm-ascend:DeepSeekV4-flash-0731-a3 (A3) or "
               "...:DeepSeekV4-flash-0731 (A2)");
}

void CheckFormats(const ServeCommand& command, Reporter& report) {
  const std::string name = Lower(fs::path(command.model).filename());
  const bool is_v4 = Contains(name, "v4");
  const auto mode = command.Text("tokenizer-mode");
  if (is_v4 && (!command.Has("tokenizer-mode") || (mode && *mode != "deepseek_v4"))) {
    report.Error("tokenizer-mode", command.LineOf("tokenizer-mode"),
                 "the checkpoint has no chat template: chat requests need the built-in V4 encoding",
                 "add --tokenizer-mode deepseek_v4");
  }
  if (command.IsOn("enable-auto-tool-choice") && !command.Has("tool-call-parser")) {
    report.Error("tool-parser-missing", command.LineOf("enable-auto-tool-choice"),
                 "--enable-auto-tool-choice requires --tool-call-parser",
                 "add --tool-call-parser deepseek_v4");
  }
  if (is_v4 && Contains(name, "w8a8") && !command.Has("quantization")) {
    report.Error("quantization-missing", command.line,
                 "W8A8 weights from modelslim are read as if they were not quantised",
                 "add --quantization ascend");
  }
}

}  // namespace

void CheckModel(const ServeCommand& command, Findings& findings) {
  Reporter report(command, findings);
  if (command.model.empty()) {
    report.Error("model-missing", command.line, "no model is named",
                 "write the folder of the weights behind `vllm serve`");
  }
  CheckLoader(command, report);
  for (const char* flag : {"additional-config", "speculative-config", "compilation-config"}) {
    CheckBooleans(command.Json(flag), command.LineOf(flag), report);
  }
  CheckDrafter(command, report);
  CheckImage(command, report);
  CheckFormats(command, report);
}

}  // namespace fulgur::deploy
