#include "cli/flag_help.h"

#include <algorithm>
#include <vector>

#include "cli/flag_values.h"
#include "cli/near_miss.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

constexpr size_t kHelpColumn = 30;
constexpr size_t kWidth = 100;

std::string Placeholder(const FlagSpec& flag) {
  switch (flag.type) {
    case FlagType::kBool:
      return "";
    case FlagType::kInt:
    case FlagType::kCount:
      return " N";
    case FlagType::kFloat:
      return " X";
    case FlagType::kText:
      return flag.choices.empty() ? " TEXT" : fmt::format(" {{{}}}", flag.choices);
    case FlagType::kTextList:
      return " TEXT...";
    case FlagType::kJson:
    case FlagType::kJsonList:
      return " JSON";
  }
  return "";
}

// Appends words of `text` in lines of kWidth columns that start at kHelpColumn.
void AppendWrapped(std::string_view text, size_t column, std::string* out) {
  for (std::string_view word : SplitWords(text, ' ')) {
    if (column + word.size() + 1 > kWidth) {
      *out += fmt::format("\n{}", std::string(kHelpColumn, ' '));
      column = kHelpColumn;
    }
    *out += fmt::format(" {}", word);
    column += word.size() + 1;
  }
  out->push_back('\n');
}

std::string Explanation(const FlagSpec& flag) {
  std::string text(flag.help.en);
  if (!flag.default_value.empty() && flag.default_value != "false") {
    text += fmt::format(" [{}]", flag.default_value);
  }
  if (flag.effect == FlagEffect::kExplained) {
    text += fmt::format(" -- no effect: {}", flag.reason.en);
  } else if (flag.effect == FlagEffect::kRefused) {
    text += fmt::format(" -- refused: {}", flag.reason.en);
  }
  return text;
}

std::string HelpForFlag(const FlagSpec& flag) {
  std::string head = fmt::format("  --{}{}", flag.name, Placeholder(flag));
  if (!flag.aliases.empty()) {
    head += fmt::format(", {}", fmt::join(SplitWords(flag.aliases, ' '), ", "));
  }
  if (head.size() < kHelpColumn) {
    head.resize(kHelpColumn, ' ');
  } else {
    head += fmt::format("\n{}", std::string(kHelpColumn, ' '));
  }
  AppendWrapped(Explanation(flag), kHelpColumn, &head);
  return head;
}

std::string HelpForGroup(const FlagGroup& group, bool all) {
  std::string text;
  for (const FlagSpec& flag : group.flags) {
    if (all || flag.effect == FlagEffect::kUsed) text += HelpForFlag(flag);
  }
  return text.empty() ? text : fmt::format("{}:\n{}\n", group.title.en, text);
}

std::string ListGroups(const FlagTable& table) {
  std::string text = "Groups for --help=GROUP:\n";
  for (const FlagGroup& group : table.groups()) {
    text +=
        fmt::format("  {}{}{}\n", group.id, std::string(16 - group.id.size(), ' '), group.title.en);
  }
  return text;
}

std::string_view In(const Text& text, Language language) {
  return language == Language::kEnglish ? text.en : text.zh;
}

// Fit for a cell of a Markdown table.
std::string Cell(std::string_view text) {
  return ReplaceAll(ReplaceAll(std::string(text), "|", "\\|"), "<", "&lt;");
}

std::string Code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", ReplaceAll(std::string(text), "|", "\\|"));
}

std::string TypeName(const FlagSpec& flag, Language language) {
  const bool english = language == Language::kEnglish;
  switch (flag.type) {
    case FlagType::kBool:
      return english ? "switch" : "开关";
    case FlagType::kInt:
      return english ? "number" : "整数";
    case FlagType::kCount:
      return english ? "number (k, K, m, M ...)" : "整数（可带 k、K、m、M…）";
    case FlagType::kFloat:
      return english ? "decimal" : "小数";
    case FlagType::kText:
      return english ? "text" : "文本";
    case FlagType::kTextList:
      return english ? "texts" : "多个文本";
    case FlagType::kJson:
      return "JSON";
    case FlagType::kJsonList:
      return english ? "JSON list" : "JSON 列表";
  }
  return "";
}

std::string FlagRow(const FlagSpec& flag, Language language) {
  std::string names = Code(fmt::format("--{}", flag.name));
  for (std::string_view alias : SplitWords(flag.aliases, ' ')) {
    names += fmt::format(", {}", Code(alias));
  }
  std::string type = TypeName(flag, language);
  if (!flag.choices.empty()) {
    type = fmt::format("{}{}", flag.type == FlagType::kText ? "" : fmt::format("{}: ", type),
                       Code(fmt::format("{}", fmt::join(SplitChoices(flag.choices), " | "))));
  }
  std::string meaning = Cell(In(flag.help, language));
  if (flag.effect != FlagEffect::kUsed) {
    const std::string_view separator = language == Language::kEnglish ? ". **" : "。**";
    const std::string_view colon = language == Language::kEnglish ? "**: " : "**：";
    meaning += fmt::format("{}{}{}{}", separator, EffectName(flag.effect, language), colon,
                           Cell(In(flag.reason, language)));
  }
  return fmt::format("| {} | {} | {} | {} |\n", names, type, Code(flag.default_value), meaning);
}

constexpr Text kPageTitle = {"Flags of `fulgur serve`", "`fulgur serve` 的参数"};
constexpr Text kPageIntro = {
    "Every flag that `vllm serve` command lines for this model use is understood. A flag is used; "
    "or it is accepted without effect, and the log says why; or serving refuses it with the "
    "reason. `fulgur serve ... --dry-run` prints this for a given command. `_` equals `-`. A "
    "switch `--flag` is turned off by `--no-flag`. JSON values may be given whole or in pieces "
    "(`--flag.key value`). `--config FILE.yaml` reads flags from a file.",
    "所有用于此模型的 `vllm serve` "
    "命令行参数都能识别。参数分三类：生效；接受但无作用，日志会说明原因；"
    "拒绝并给出理由。`fulgur serve ... --dry-run` 会针对给定命令打印这些信息。`_` 等同于 `-`。开关 "
    "`--flag` 用 `--no-flag` 关闭。JSON 值可整体给出，也可分段（`--flag.key value`）。`--config "
    "FILE.yaml` 从文件读取参数。"};
constexpr Text kPageMade = {"<!-- Made by `fulgur help --markdown en`; do not edit. -->\n",
                            "<!-- 由 `fulgur help --markdown zh` 生成，请勿手改。 -->\n"};
constexpr Text kPageTwin = {"*[中文](../zh/flags.md)*", "*[English](../en/flags.md)*"};
constexpr Text kTableHead = {"| Flag | Type | Default | Meaning |\n|---|---|---|---|\n",
                             "| 参数 | 类型 | 默认 | 含义 |\n|---|---|---|---|\n"};
constexpr Text kEnvironmentTitle = {"Environment variables", "环境变量"};
constexpr Text kEnvironmentHead = {"| Variable | Effect | |\n|---|---|---|\n",
                                   "| 变量 | 作用 | |\n|---|---|---|\n"};

}  // namespace

std::string_view EffectName(FlagEffect effect, Language language) {
  const bool english = language == Language::kEnglish;
  switch (effect) {
    case FlagEffect::kUsed:
      return english ? "used" : "生效";
    case FlagEffect::kExplained:
      return english ? "no effect" : "无作用";
    case FlagEffect::kRefused:
      return english ? "refused" : "拒绝";
  }
  return "";
}

std::string HelpForUsedFlags(const FlagTable& table) {
  std::string text;
  for (const FlagGroup& group : table.groups()) {
    text += HelpForGroup(group, /*all=*/false);
  }
  return text;
}

absl::StatusOr<std::string> HelpForTopic(const FlagTable& table, std::string_view topic) {
  if (topic == "listgroup") return ListGroups(table);
  std::string all;
  std::vector<std::string_view> topics = {"all", "listgroup"};
  for (const FlagGroup& group : table.groups()) {
    if (group.id == topic) return HelpForGroup(group, /*all=*/true);
    all += HelpForGroup(group, /*all=*/true);
    topics.push_back(group.id);
    for (const FlagSpec& flag : group.flags) topics.push_back(flag.name);
  }
  if (topic == "all") return all;
  const std::string_view name = topic.substr(std::min(topic.size(), topic.find_first_not_of('-')));
  if (const FlagSpec* flag = table.FindSpelling(fmt::format("--{}", name)); flag != nullptr) {
    return HelpForFlag(*flag);
  }
  const auto near = NearMiss(name, topics);
  return absl::InvalidArgumentError(fmt::format(
      "--help={}: no such flag or group{}", topic,
      near ? fmt::format("; did you mean --help={}?", *near) : "; --help=listgroup lists them"));
}

std::string FlagsPage(const FlagTable& table, std::span<const EnvironmentVariable> environment,
                      Language language) {
  std::string page =
      fmt::format("{}# {}\n\n{}\n\n{}\n", In(kPageMade, language), In(kPageTitle, language),
                  In(kPageTwin, language), In(kPageIntro, language));
  for (const FlagGroup& group : table.groups()) {
    page += fmt::format("\n## {}\n\n{}", In(group.title, language), In(kTableHead, language));
    for (const FlagSpec& flag : group.flags) page += FlagRow(flag, language);
  }
  page +=
      fmt::format("\n## {}\n\n{}", In(kEnvironmentTitle, language), In(kEnvironmentHead, language));
  for (const EnvironmentVariable& variable : environment) {
    page += fmt::format("| `{}` | {} | {} |\n", variable.name,
                        EffectName(variable.effect, language), Cell(In(variable.help, language)));
  }
  return page;
}

}  // namespace fulgur::cli
