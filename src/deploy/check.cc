#include "deploy/check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "deploy/rules.h"
#include "fmt/format.h"
#include "io/mapped_file.h"

namespace fulgur::deploy {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxNesting = 4;  // scripts in here-documents in scripts
constexpr int64_t kMaxScriptBytes = 1 << 20;

std::string FileName(const std::string& path) { return fs::path(path).filename(); }

// What is known about the surroundings of the serve commands in a folder.
struct Surroundings {
  std::map<std::string, ShellWord> container_environment;
  std::string image;
  int image_line = 0;
  std::optional<int> num_devices;
  ShellVariables positionals;  // what the starter of the ranks passes: $1 to $7
};

// The arguments of launch_online_dp.py, and what the template gets from it.
ShellVariables PositionalsOf(const std::vector<ShellWord>& words) {
  std::map<std::string, ShellWord> flags;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].text.starts_with("--")) flags[words[i].text] = words[i + 1];
  }
  ShellVariables positionals;
  const std::pair<const char*, const char*> kNames[] = {
      {"2", "--vllm-start-port"}, {"3", "--dp-size"},     {"4", "--dp-rank-start"},
      {"5", "--dp-address"},      {"6", "--dp-rpc-port"}, {"7", "--tp-size"}};
  for (const auto& [number, flag] : kNames) {
    const auto found = flags.find(flag);
    if (found != flags.end() && !found->second.unknown) positionals[number] = found->second.text;
  }
  if (flags.count("--dp-size") != 0 && flags.count("--tp-size") == 0) positionals["7"] = "1";
  if (flags.count("--dp-size") != 0 && flags.count("--dp-rank-start") == 0) positionals["4"] = "0";
  return positionals;
}

bool StartsRanks(const ShellCommand& command) {
  for (const ShellWord& word : command.words) {
    const std::string name = FileName(word.text);
    if (name == "launch_online_dp.py" || name == "start_ranks.sh") return true;
  }
  return false;
}

// Position of the first word behind `vllm serve` (or fulgur), if the command is one.
std::optional<size_t> ServeArguments(const std::vector<ShellWord>& words) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string name = FileName(words[i].text);
    if ((name == "vllm" || name == "fulgur") && words[i + 1].text == "serve") return i + 2;
    if (words[i].text == "vllm.entrypoints.openai.api_server") return i + 1;
  }
  return std::nullopt;
}

bool IsContainer(const std::vector<ShellWord>& words) {
  bool runs = false;
  for (size_t i = 0; i + 1 < words.size() && !runs; ++i) {
    const std::string name = FileName(words[i].text);
    runs =
        (name == "docker" || name == "podman" || name == "nerdctl") && words[i + 1].text == "run";
  }
  return runs;
}

class Collector {
 public:
  Collector(const FlagSyntax& syntax, Findings& findings) : syntax_(syntax), findings_(findings) {}

  std::vector<ServeCommand>& commands() { return commands_; }

  // First pass over a script: containers and starters.
  void ReadSurroundings(const std::string& text, Surroundings& around) {
    for (const ShellCommand& command : ReadShellScript(text)) {
      if (IsContainer(command.words)) ReadContainer(command.words, around);
      if (StartsRanks(command)) around.positionals = PositionalsOf(command.words);
    }
  }

  // Second pass: serve commands, also in here-documents and in the texts of `bash -c`.
  void ReadCommands(const std::string& text, const std::string& file, const Surroundings& around,
                    int first_line = 1, int nesting = 0) {
    if (nesting > kMaxNesting) return;
    std::map<std::string, ShellWord> environment = around.container_environment;
    for (const ShellCommand& command : ReadShellScript(text, around.positionals, first_line)) {
      if (!command.words.empty() && command.words[0].text == "unset") {
        for (const ShellWord& word : command.words) environment.erase(word.text);
      }
      for (const HereDocument& document : command.documents) {
        ReadDocument(document, file, around, nesting);
      }
      for (const auto& [name, value] : command.assignments) environment[name] = value;
      Surroundings inside = around;
      inside.container_environment = environment;
      ReadNested(command.words, file, inside, nesting);
      CheckProxy(command.words, file);
      if (const auto start = ServeArguments(command.words)) {
        AddCommand({command.words.begin() + static_cast<ptrdiff_t>(*start), command.words.end()},
                   command, file, inside);
      }
    }
  }

 private:
  static void ReadContainer(const std::vector<ShellWord>& words, Surroundings& around) {
    int devices = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      devices += text.find("/dev/davinci") != std::string::npos &&
                 text.find_first_of("0123456789") != std::string::npos;
      const bool variable = text == "-e" || text == "--env";
      if (variable && i + 1 < words.size()) {
        const std::string& pair = words[i + 1].text;
        const size_t equals = pair.find('=');
        if (equals != std::string::npos) {
          around.container_environment[pair.substr(0, equals)] = {
              pair.substr(equals + 1), words[i + 1].line, words[i + 1].unknown};
        }
      }
      if (text.find("vllm-ascend:") != std::string::npos && text[0] != '-') {
        around.image = text;
        around.image_line = words[i].line;
      }
    }
    if (devices > 0) around.num_devices = devices;
  }

  // The layer-wise proxy hands its own --host on to the decode nodes as the metaserver's.
  void CheckProxy(const std::vector<ShellWord>& words, const std::string& file) {
    const bool layerwise = std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
      return FileName(word.text).starts_with("load_balance_proxy_layerwise");
    });
    for (size_t i = 0; layerwise && i + 1 < words.size(); ++i) {
      const ShellWord& host = words[i + 1];
      if (words[i].text != "--host" || host.unknown || IsCallable(host.text)) continue;
      findings_.push_back({Severity::kError, "metaserver-address", file, host.line,
                           fmt::format("the proxy tells decode nodes to call {}, which is no "
                                       "address that they can call",
                                       host.text),
                           "write the proxy's own address behind --host"});
    }
  }

  void ReadDocument(const HereDocument& document, const std::string& file,
                    const Surroundings& around, int nesting) {
    const bool serves = document.body.find(" serve ") != std::string::npos;
    if (serves && !document.quoted && document.body.find('$') != std::string::npos) {
      findings_.push_back(
          {Severity::kWarning, "document-expanded", file, document.line,
           "the here-document's delimiter is not quoted: variables are filled in, and backslashes "
           "lost, when the script is written, not when it runs",
           "quote the delimiter: cat > serve.sh <<'EOF'"});
    }
    ReadCommands(document.body, file, around, document.line, nesting + 1);
  }

  // bash -c 'TEXT'; also behind `docker run IMAGE`.
  void ReadNested(const std::vector<ShellWord>& words, const std::string& file,
                  const Surroundings& around, int nesting) {
    for (size_t i = 0; i + 2 < words.size(); ++i) {
      const std::string name = FileName(words[i].text);
      const std::string& option = words[i + 1].text;
      const bool runs_text = (name == "bash" || name == "sh") && option.size() > 1 &&
                             option[0] == '-' && option[1] != '-' && option.back() == 'c';
      if (!runs_text) continue;
      ReadCommands(words[i + 2].text, file, around, words[i].line, nesting + 1);
      return;
    }
  }

  void AddCommand(const std::vector<ShellWord>& arguments, const ShellCommand& shell,
                  const std::string& file, const Surroundings& around) {
    ServeCommand command = ReadServeCommand(arguments, syntax_, file, findings_);
    if (command.line == 0) command.line = shell.line;
    command.environment = around.container_environment;
    command.image = around.image;
    command.image_line = around.image_line;
    command.num_devices = around.num_devices;
    if (const auto visible = command.Variable("ASCEND_RT_VISIBLE_DEVICES")) {
      command.num_devices = static_cast<int>(std::count(visible->begin(), visible->end(), ',')) + 1;
    }
    commands_.push_back(std::move(command));
  }

  const FlagSyntax& syntax_;
  Findings& findings_;
  std::vector<ServeCommand> commands_;
};

CheckReport Judge(const std::vector<ServeCommand>& commands, Findings findings) {
  for (const ServeCommand& command : commands) {
    CheckModel(command, findings);
    CheckCache(command, findings);
    CheckParallel(command, findings);
    CheckTransfer(command, findings);
  }
  CheckTogether(commands, findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.file, a.line) < std::tie(b.file, b.line);
  });
  // One cause may be seen twice, as by both halves of a pair.
  findings.erase(std::unique(findings.begin(), findings.end()), findings.end());
  return {std::move(findings), static_cast<int>(commands.size())};
}

absl::StatusOr<std::string> ReadScript(const fs::path& path) {
  ASSIGN_OR_RETURN(const io::MappedFile file, io::MappedFile::Open(path.string()));
  if (file.size() > kMaxScriptBytes) {
    return absl::InvalidArgumentError(path.string() + " is too large for a script");
  }
  return std::string(file.text());
}

// Scripts by folder: what lies together belongs together.
absl::StatusOr<std::map<fs::path, std::vector<fs::path>>> ScriptsBelow(const fs::path& path) {
  std::map<fs::path, std::vector<fs::path>> scripts;
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    scripts[path.parent_path()].push_back(path);
    return scripts;
  }
  if (!fs::is_directory(path, error)) {
    return absl::NotFoundError(fmt::format("there is no {}", path.string()));
  }
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".sh") scripts[it->path().parent_path()].push_back(it->path());
  }
  for (auto& [folder, files] : scripts) std::sort(files.begin(), files.end());
  return scripts;
}

}  // namespace

CheckReport CheckCommandLine(std::span<const std::string> words, const std::string& image,
                             const FlagSyntax& syntax) {
  std::vector<ShellWord> rest;
  for (const std::string& word : words) rest.push_back({word, 0, false});
  const auto start = ServeArguments(rest);
  if (start) {
    rest.erase(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(*start));
  } else if (!rest.empty() && rest[0].text == "serve") {
    rest.erase(rest.begin());
  }
  Findings findings;
  ServeCommand command = ReadServeCommand(rest, syntax, "", findings);
  command.image = image;
  return Judge({std::move(command)}, std::move(findings));
}

absl::StatusOr<CheckReport> CheckPath(const fs::path& path, const std::string& image,
                                      const FlagSyntax& syntax) {
  ASSIGN_OR_RETURN(const auto scripts, ScriptsBelow(path));
  Findings findings;
  Collector collector(syntax, findings);
  for (const auto& [folder, files] : scripts) {
    Surroundings around;
    around.image = image;
    std::map<fs::path, std::string> texts;
    for (const fs::path& file : files) {
      ASSIGN_OR_RETURN(texts[file], ReadScript(file));
      collector.ReadSurroundings(texts[file], around);
    }
    for (const auto& [file, text] : texts) collector.ReadCommands(text, file.string(), around);
  }
  if (collector.commands().empty()) {
    return absl::NotFoundError(
        fmt::format("{} holds no `vllm serve` or `fulgur serve` command", path.string()));
  }
  return Judge(collector.commands(), std::move(findings));
}

}  // namespace fulgur::deploy
