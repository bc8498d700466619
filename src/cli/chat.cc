// `fulgur chat`: a conversation in the terminal.
#include <curl/curl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/status_macros.h"
#include "cli/chat_client.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/subcommands.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

constexpr FlagSpec kFlags[] = {
    {.name = "url",
     .default_value = "http://127.0.0.1:8000",
     .help = {"the server; unix:/path for a socket", "服务器地址；套接字写作 unix:/路径"}},
    {.name = "model",
     .help = {"the model (default: the first that the server lists)",
              "模型名（默认：服务器列出的第一个）"}},
    {.name = "api-key",
     .help = {"key to send (default: VLLM_API_KEY)", "要发送的密钥（默认：VLLM_API_KEY）"}},
    {.name = "system", .help = {"system prompt", "系统提示"}},
    {.name = "reasoning-effort",
     .help = {"none, low, high or max; the server decides what they mean",
              "none、low、high 或 max；含义由服务器决定"}},
    {.name = "temperature",
     .type = FlagType::kFloat,
     .help = {"sampling temperature; 0 takes the most probable token",
              "采样温度；0 总取最可能的 token"},
     .range = {.min = 0, .max = 2}},
    {.name = "max-tokens",
     .type = FlagType::kCount,
     .help = {"longest answer", "回答的最大长度"},
     .range = {.min = 1}},
};

constexpr std::string_view kUsage = "chat [flags]";
constexpr std::string_view kHints = "/reset starts over, /quit ends, Ctrl-C stops an answer";

const FlagTable& ChatFlagTable() {
  static const FlagTable table({{"chat", {"Flags", "参数"}, kFlags}});
  return table;
}

std::atomic<bool> interrupted{false};

void OnInterrupt(int) { interrupted = true; }

// Writes an answer as it arrives. On a terminal reasoning is dim; elsewhere it goes to standard
// error, so that standard output is the answer alone.
class AnswerPrinter {
 public:
  explicit AnswerPrinter(bool terminal) : terminal_(terminal) {}

  void Print(std::string_view piece, bool reasoning) {
    if (reasoning != in_reasoning_) Switch(reasoning);
    std::ostream& out = reasoning && !terminal_ ? std::cerr : std::cout;
    out << (terminal_ ? Harmless(piece) : std::string(piece)) << std::flush;
  }

  void Finish() {
    if (in_reasoning_) Switch(false);
    std::cout << std::endl;
  }

 private:
  void Switch(bool reasoning) {
    in_reasoning_ = reasoning;
    if (terminal_) {
      std::cout << (reasoning ? "\033[2m" : "\033[0m\n\n");
    } else if (!reasoning) {
      std::cerr << std::endl;
    }
  }

  // Without control characters: a model's output must not steer the terminal.
  static std::string Harmless(std::string_view piece) {
    std::string text;
    for (char c : piece) {
      const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
      if (!control || c == '\n' || c == '\t') text.push_back(c);
    }
    return text;
  }

  const bool terminal_;
  bool in_reasoning_ = false;
};

ChatSettings SettingsOf(const FlagValues& values) {
  ChatSettings settings;
  settings.model = values.String("model");
  settings.system_prompt = values.String("system");
  settings.reasoning_effort = values.String("reasoning-effort");
  if (values.Given("temperature")) settings.temperature = values.Float("temperature");
  if (values.Given("max-tokens")) settings.max_tokens = values.Int("max-tokens");
  return settings;
}

std::string KeyOf(const FlagValues& values) {
  const char* key = std::getenv("VLLM_API_KEY");
  if (values.Given("api-key") || key == nullptr) return values.String("api-key");
  return key;
}

// Schemes other than these would be libcurl's to speak, from mail to local files.
absl::Status CheckUrl(const std::string& url) {
  const size_t scheme_end = url.find("://");
  const bool has_address = scheme_end == std::string::npos ? !url.empty() && url != "unix:"
                                                           : scheme_end + 3 < url.size();
  const bool known = scheme_end == std::string::npos || url.starts_with("http://") ||
                     url.starts_with("https://") || url.starts_with("unix:");
  if (known && has_address) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "--url: '{}' is not accepted; write http://HOST:PORT, https://HOST:PORT or unix:/PATH", url));
}

class Conversation {
 public:
  explicit Conversation(ChatClient& client)
      : client_(client),
        keyboard_(isatty(STDIN_FILENO) != 0),
        screen_(isatty(STDOUT_FILENO) != 0) {}

  // Until the input ends; false if an answer failed.
  bool Run() {
    bool all_well = true;
    std::string line;
    while (ReadLine(line)) {
      if (line == "/quit" || line == "/exit") break;
      if (line.empty()) continue;
      if (line == "/reset") {
        client_.Reset();
        if (keyboard_) std::cout << "(a new conversation)" << std::endl;
      } else if (line[0] == '/' && line.find(' ') == std::string::npos && keyboard_) {
        std::cout << "(" << kHints << ")" << std::endl;
      } else {
        all_well = Answer(line) && all_well;
      }
    }
    return all_well;
  }

 private:
  bool ReadLine(std::string& line) {
    if (keyboard_) std::cout << "> " << std::flush;
    interrupted = false;
    if (!std::getline(std::cin, line)) {
      if (keyboard_) std::cout << std::endl;
      return false;
    }
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }

  bool Answer(const std::string& line) {
    AnswerPrinter printer(screen_);
    const auto answer = client_.Say(
        line, [&](std::string_view piece, bool reasoning) { printer.Print(piece, reasoning); },
        [] { return interrupted.load(); });
    printer.Finish();
    if (!answer.ok()) {
      std::cerr << "fulgur chat: " << Message(answer.status()) << std::endl;
      return false;
    }
    if (answer->cancelled) std::cout << "(stopped)" << std::endl;
    if (answer->finish_reason == "length") {
      std::cerr << "(the answer reached the limit of tokens)" << std::endl;
    }
    return true;
  }

  ChatClient& client_;
  const bool keyboard_;
  const bool screen_;
};

// Ctrl-C interrupts an answer; at the prompt, where nothing is to be interrupted, it ends the
// program, because reading is not restarted.
void InstallInterruptHandler() {
  struct sigaction action = {};
  action.sa_handler = &OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

int RunChat(const Invocation& invocation) {
  for (const std::string& arg : invocation.args) {
    if (arg != "--help" && arg != "-h") continue;
    std::cout << "usage: " << invocation.program << " " << kUsage
              << "\n\nTalks to a server that speaks the OpenAI API. " << kHints << ".\n\n"
              << HelpForUsedFlags(ChatFlagTable());
    return 0;
  }
  const auto command = ParseCommand(ChatFlagTable(), invocation.args);
  if (!command.ok()) {
    return ReportMistake(invocation, std::string(kUsage), Message(command.status()));
  }
  if (!command->positionals.empty()) {
    return ReportMistake(invocation, std::string(kUsage),
                         fmt::format("unexpected argument '{}'", command->positionals.front()));
  }
  const absl::Status url = CheckUrl(command->values.String("url"));
  if (!url.ok()) return ReportMistake(invocation, std::string(kUsage), Message(url));
  curl_global_init(CURL_GLOBAL_DEFAULT);
  HttpClient http(command->values.String("url"), KeyOf(command->values));
  ChatClient client(http, SettingsOf(command->values));
  const auto model = client.Model();
  if (!model.ok()) {
    std::cerr << "fulgur chat: " << Message(model.status()) << std::endl;
    return 1;
  }
  if (isatty(STDIN_FILENO) != 0) {
    std::cout << "Talking to " << *model << ". " << kHints << "." << std::endl;
    InstallInterruptHandler();
  }
  return Conversation(client).Run() ? 0 : 1;
}

}  // namespace fulgur::cli
