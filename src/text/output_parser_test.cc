#include "text/output_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "text/json.h"
#include "text/markup.h"
#include "text/testing/output_cases.h"
#include "text/utf8.h"

namespace fulgur::text {
namespace {

using ::testing::IsEmpty;
using testing::OutputCase;
using testing::OutputCases;
using Kind = OutputDelta::Kind;

const char kWeatherTools[] = R"([
  {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
   "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}},
  {"type": "function", "function": {"name": "run", "parameters": {"type": "object",
   "properties": {"command": {"type": "string"}}}}}])";

OutputParserOptions WithTools(OutputStart start = OutputStart::kContent) {
  OutputParserOptions options;
  options.start = start;
  options.parse_tools = true;
  options.tools = std::make_shared<const ToolSchemas>(*ToolSchemas::FromJson(kWeatherTools));
  return options;
}

// Writes DSML with "S" for the marker: Dsml("<S invoke name=\"x\">").
std::string Dsml(std::string text) {
  for (size_t at = text.find("S "); at != text.npos; at = text.find("S ", at)) {
    text.replace(at, 2, "｜DSML｜");
  }
  return text;
}

std::string Call(const std::string& name, const std::string& parameters) {
  return Dsml("<S invoke name=\"" + name + "\">\n" + parameters + "\n</S invoke>\n");
}

std::string Block(const std::string& calls) {
  return Dsml("\n\n<S tool_calls>\n" + calls + "</S tool_calls>");
}

std::string Parameter(const std::string& name, const std::string& value, bool is_string = true) {
  return Dsml("<S parameter name=\"" + name + "\" string=\"" + (is_string ? "true" : "false") +
              "\">" + value + "</S parameter>");
}

// How a text is handed to the parser: lengths of the pieces, from a generator.
using NextLength = std::function<size_t()>;

ParsedOutput ParseInPieces(const OutputCase& c, const NextLength& next_length) {
  OutputParser parser(c.options);
  std::vector<OutputDelta> deltas;
  for (size_t at = 0; at < c.text.size();) {
    const size_t length = next_length();
    parser.PushText(std::string_view(c.text).substr(at, length), &deltas);
    at += length;
  }
  parser.Finish(c.end, &deltas);
  ParsedOutput output;
  output.Append(deltas);
  return output;
}

// The marked form of a text, in pieces of at most one marker.
ParsedOutput ParseMarked(const OutputCase& c, const NextLength& next_length) {
  std::string marked;
  MarkerScanner scanner;
  scanner.Push(c.text, &marked);
  scanner.Finish(&marked);
  OutputParser parser(c.options);
  std::vector<OutputDelta> deltas;
  for (size_t at = 0; at < marked.size();) {
    if (IsMark(marked[at])) {
      parser.PushMarker(MarkerOfMark(marked[at++]), &deltas);
      continue;
    }
    size_t end = at;
    for (size_t n = next_length(); n > 0 && end < marked.size() && !IsMark(marked[end]); --n) ++end;
    parser.PushOrdinaryText(std::string_view(marked).substr(at, end - at), &deltas);
    at = end;
  }
  parser.Finish(c.end, &deltas);
  ParsedOutput output;
  output.Append(deltas);
  return output;
}

TEST(OutputParserTest, CasesAtOnce) {
  for (const OutputCase& c : OutputCases()) {
    EXPECT_EQ(ParseOutput(c.text, c.options, c.end), c.expected) << c.id;
  }
}

TEST(OutputParserTest, CasesAtEveryTwoWaySplitOfBytes) {
  for (const OutputCase& c : OutputCases()) {
    for (size_t split = 1; split < c.text.size(); ++split) {
      size_t next = split;
      const auto lengths = [&] { return std::exchange(next, c.text.size()); };
      ASSERT_EQ(ParseInPieces(c, lengths), c.expected) << c.id << " split at " << split;
    }
  }
}

TEST(OutputParserTest, CasesByteByByteAndInRandomPieces) {
  const unsigned seed = 23;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (const OutputCase& c : OutputCases()) {
    ASSERT_EQ(ParseInPieces(c, [] { return 1; }), c.expected) << c.id;
    ASSERT_EQ(ParseMarked(c, [] { return 1; }), c.expected) << c.id;
    ASSERT_EQ(ParseMarked(c, [] { return 1 << 20; }), c.expected) << c.id;
    for (int round = 0; round < 100; ++round) {
      const size_t longest = 1 + rng() % 20;
      const auto lengths = [&] { return 1 + rng() % longest; };
      ASSERT_EQ(ParseInPieces(c, lengths), c.expected) << c.id;
      ASSERT_EQ(ParseMarked(c, lengths), c.expected) << c.id;
    }
  }
}

TEST(OutputParserTest, DeltasAreWholeCharactersWithoutMarkup) {
  for (const OutputCase& c : OutputCases()) {
    if (!c.options.parse_tools || c.expected.tool_calls.empty()) continue;
    OutputParser parser(c.options);
    for (char byte : c.text) {
      std::vector<OutputDelta> deltas;
      parser.PushText({&byte, 1}, &deltas);
      for (const OutputDelta& delta : deltas) {
        EXPECT_TRUE(IsValidUtf8(delta.text)) << c.id;
        if (delta.kind != Kind::kArguments) {
          EXPECT_EQ(delta.text.find("DSML"), delta.text.npos) << c.id;
        }
      }
    }
  }
}

// Every prefix of an output, as if the token limit had cut it there: never markup in the content,
// and arguments are a prefix of the whole call's.
TEST(OutputParserTest, NoCutShowsMarkup) {
  const std::string text = "Thinking.</think>Fine." +
                           Block(Call("get_weather", Parameter("city", "a <b> \"c\" 你好") + "\n" +
                                                         Parameter("days", "3", false)));
  const OutputParserOptions options = WithTools(OutputStart::kReasoning);
  const ParsedOutput whole = ParseOutput(text, options, OutputEnd::kStop);
  ASSERT_EQ(whole.tool_calls.size(), 1u);
  for (size_t length = 0; length < text.size(); ++length) {
    // Only at the end of characters and markers, as tokens do.
    const std::string prefix = text.substr(0, length);
    const std::string_view rest = std::string_view(text).substr(length);
    if (!IsValidUtf8(prefix) || rest.starts_with("DSML") || rest.starts_with("SML") ||
        rest.starts_with("ML") || rest.starts_with("L｜") || rest.starts_with("｜D") ||
        rest.starts_with("｜tool") || rest.starts_with("｜inv") || rest.starts_with("｜par")) {
      continue;
    }
    const ParsedOutput cut = ParseOutput(prefix, options, OutputEnd::kLength);
    EXPECT_EQ(cut.content.find("DSML"), std::string::npos) << prefix;
    EXPECT_TRUE(std::string("Fine.").starts_with(cut.content) || cut.content == "Fine.\n" ||
                cut.content == "Fine.\n\n" || cut.content == "Fine.\n\n<")
        << cut.content;
    if (!cut.tool_calls.empty()) {
      EXPECT_TRUE(whole.tool_calls[0].arguments.starts_with(cut.tool_calls[0].arguments));
    }
  }
}

TEST(OutputParserTest, AnnouncesACallBeforeItsArguments) {
  OutputParser parser(WithTools());
  std::vector<OutputDelta> deltas;
  parser.PushText(Dsml("\n\n<S tool_calls>\n<S invoke name=\"run\">"), &deltas);
  EXPECT_EQ(deltas, (std::vector<OutputDelta>{{Kind::kToolCall, 0, "run"}}));
  deltas.clear();
  parser.PushText(Dsml("\n<S parameter name=\"command\" string=\"true\">ls"), &deltas);
  EXPECT_EQ(deltas, (std::vector<OutputDelta>{{Kind::kArguments, 0, "{\"command\": \"ls"}}));
  deltas.clear();
  parser.PushText(" -l <", &deltas);
  EXPECT_EQ(deltas, (std::vector<OutputDelta>{{Kind::kArguments, 0, " -l "}}));
  deltas.clear();
  parser.PushText(Dsml("/S parameter>\n</S invoke>"), &deltas);
  EXPECT_EQ(deltas, (std::vector<OutputDelta>{{Kind::kArguments, 0, "\"}"}}));
  EXPECT_EQ(parser.num_tool_calls(), 1);
}

TEST(OutputParserTest, ClosingTagsNeverLeakIntoArguments) {
  for (const std::string value :
       {"make all > out.log 2>&1", "a <", "b </", "</x>&amp;<y/>", "<｜", "\n"}) {
    const std::string text = Block(Call("run", Parameter("command", value)));
    for (size_t split = 1; split < text.size(); ++split) {
      OutputParser parser(WithTools());
      std::vector<OutputDelta> deltas;
      parser.PushText(text.substr(0, split), &deltas);
      parser.PushText(text.substr(split), &deltas);
      parser.Finish(OutputEnd::kStop, &deltas);
      ParsedOutput output;
      output.Append(deltas);
      ASSERT_EQ(output.tool_calls.size(), 1u);
      const auto arguments = ParseJson(output.tool_calls[0].arguments);
      ASSERT_TRUE(arguments.ok());
      ASSERT_EQ(arguments->Find("command")->string(), value);
    }
  }
}

TEST(OutputParserTest, ReasoningThatForgetsToCloseStillCalls) {
  const auto output = ParseOutput(
      "I need the weather" + Block(Call("get_weather", Parameter("city", "Oslo"))) + "\n</think>",
      WithTools(OutputStart::kReasoning), OutputEnd::kStop);
  EXPECT_EQ(output.reasoning, "I need the weather");
  EXPECT_EQ(output.content, "");
  ASSERT_EQ(output.tool_calls.size(), 1u);
}

TEST(OutputParserTest, StrayClosersBeforeABlockAreDropped) {
  for (const std::string before : {"</think>", "</think></think>", "</think>\r\n"}) {
    const auto output = ParseOutput(before + Block(Call("get_weather", Parameter("city", "Oslo"))),
                                    WithTools(), OutputEnd::kStop);
    EXPECT_EQ(output.content, "");
    EXPECT_EQ(output.tool_calls.size(), 1u);
  }
}

TEST(OutputParserTest, ATruncatedCallDoesNotSwallowTheNext) {
  const auto output =
      ParseOutput(Dsml("<S tool_calls>\n<S invoke name=\"run\">\n<S parameter name=\"command\" "
                       "string=\"true\">ls\n") +
                      Call("get_weather", Parameter("city", "Oslo")) + Dsml("</S tool_calls>"),
                  WithTools(), OutputEnd::kStop);
  EXPECT_EQ(output.tool_calls,
            (std::vector<ParsedToolCall>{{"run", R"({"command": "ls\n"})"},
                                         {"get_weather", R"({"city": "Oslo"})"}}));
}

TEST(OutputParserTest, AValueMaySpeakAboutDsml) {
  const std::string value = Dsml("see <S invoke name=\"other\"> and <S tool_calls> and ｜DSML｜");
  const auto output =
      ParseOutput(Block(Call("run", Parameter("command", value))), WithTools(), OutputEnd::kStop);
  ASSERT_EQ(output.tool_calls.size(), 1u);
  EXPECT_EQ(ParseJson(output.tool_calls[0].arguments)->Find("command")->string(), value);
}

TEST(OutputParserTest, AQuotedHeaderOfADeclaredToolIsNoCall) {
  const std::string quoted = Dsml("Write <S invoke name=\"run\"> to run it. ");
  const auto output =
      ParseOutput(quoted + "Now:" + Block(Call("get_weather", Parameter("city", "Oslo"))),
                  WithTools(), OutputEnd::kStop);
  EXPECT_EQ(output.content, quoted + "Now:");
  ASSERT_EQ(output.tool_calls.size(), 1u);
  EXPECT_EQ(output.tool_calls[0].name, "get_weather");
}

TEST(OutputParserTest, WhatOnlyResemblesMarkupIsText) {
  for (const std::string text :
       {"<|DSML|tool_calls>\n<|DSML|invoke name=\"run\">", "<｜｜DSML｜｜invoke name=\"run\">",
        "<｜DSML｜ calls>", "<｜DSML｜parameter\nof", "<｜DSML｜foo, <｜DSML｜bar.",
        "see ｜DSML｜ and <｜DSML｜parameter without header", "a <", "b </", "if 2 <3 and a</b"}) {
    EXPECT_EQ(ParseOutput(text, WithTools(), OutputEnd::kStop).content, text);
  }
}

// Parses `text` at once and byte by byte, which must agree.
ParsedOutput ParseTwice(const std::string& text, OutputEnd end, OutputFlaws* flaws,
                        OutputStart start = OutputStart::kContent) {
  OutputParser parser(WithTools(start));
  std::vector<OutputDelta> deltas;
  for (char byte : text) parser.PushText({&byte, 1}, &deltas);
  parser.Finish(end, &deltas);
  *flaws = parser.flaws();
  ParsedOutput output;
  output.Append(deltas);
  EXPECT_EQ(ParseOutput(text, WithTools(start), end), output) << text;
  return output;
}

// Tags outside of a call are nothing a reader can use.
TEST(OutputParserTest, TagsWithoutACallAreLeftOut) {
  struct Case {
    std::string text;
    std::string content;
  };
  for (const Case& c : std::vector<Case>{
           {"Done.\n</S tool_calls>", "Done."},
           {"Done.\n</S invoke>\n</S tool_calls>", "Done."},
           {"</S parameter>\n</S invoke>\n</S tool_calls>", ""},
           {"One</S parameter> two", "One two"},
           {"A.\n<S parameter name=\"city\" string=\"true\">Oslo</S parameter>", "A.\nOslo"},
           {"<S function_calls>\nText", "\nText"},
           {"<S invoke>text</S invoke>", "text"},
           {"<S function_calls>\n<S function name=\"run\">ls</S function>\n</S function_calls>",
            "\nls"},
           {"<S invoke name='run'> <S parameter key=\"x\" string=\"true\">", ""},
           {"See <S invoke name=\"other\"></S invoke> and</S invoke>",
            "See <S invoke name=\"other\"></S invoke> and"}}) {
    for (const OutputEnd end : {OutputEnd::kStop, OutputEnd::kLength}) {
      OutputFlaws flaws;
      const ParsedOutput output = ParseTwice(Dsml(c.text), end, &flaws);
      EXPECT_EQ(output, (ParsedOutput{"", Dsml(c.content), {}})) << c.text;
      EXPECT_EQ(flaws, (OutputFlaws{.stray_markup = true})) << c.text;
      const ParsedOutput reasoning = ParseTwice(Dsml(c.text), end, &flaws, OutputStart::kReasoning);
      EXPECT_EQ(reasoning.content, "");
      EXPECT_EQ(reasoning.reasoning.find("</S"), std::string::npos);
    }
  }
}

TEST(OutputParserTest, TagsCutShortAreLeftOut) {
  for (const std::string tail :
       {"<S ", "</S ", "<S tool", "<S tool_calls", "</S tool_calls", "<S par", "</S parameter",
        "<S parameter name=\"ci", "<S inv", "<S invoke", "<S invoke name", "</S invoke"}) {
    for (const OutputEnd end : {OutputEnd::kStop, OutputEnd::kLength}) {
      OutputFlaws flaws;
      EXPECT_EQ(ParseTwice(Dsml("Yes.\n\n" + tail), end, &flaws).content, "Yes.") << tail;
      EXPECT_TRUE(flaws.stray_markup);
    }
  }
}

// Without a block around it, a call needs its end.
TEST(OutputParserTest, ALooseCallWithoutEndIsNeitherCallNorText) {
  const std::string call =
      Dsml("Checking.\n<S invoke name=\"run\">\n<S parameter name=\"command\" string=\"true\">");
  for (const std::string rest : {"", "ls", "ls</S parameter>", "ls</S parameter>\n</S inv"}) {
    for (const OutputEnd end : {OutputEnd::kStop, OutputEnd::kLength}) {
      OutputFlaws flaws;
      EXPECT_EQ(ParseTwice(call + Dsml(rest), end, &flaws), (ParsedOutput{"", "Checking.", {}}));
      EXPECT_TRUE(flaws.unfinished_call);
    }
  }
  OutputFlaws flaws;
  EXPECT_EQ(ParseTwice(call + Dsml("ls</S parameter>\n</S tool_calls>"), OutputEnd::kStop, &flaws),
            (ParsedOutput{"", "Checking.", {{"run", R"({"command": "ls"})"}}}));
  EXPECT_FALSE(flaws.any());
}

TEST(OutputParserTest, TellsWhatNobodyGetsToSee) {
  const std::string block = Block(Call("run", Parameter("command", "ls")));
  struct Case {
    std::string text;
    OutputFlaws flaws;
  };
  for (const Case& c : std::vector<Case>{
           {"Fine." + block + block + "\n", {}},
           {block + "\nDone.", {.lost_text = true}},
           {Dsml("<S tool_calls>\nrun ls\n</S tool_calls>"), {.lost_text = true}},
           {Dsml("<S tool_calls>\n</S tool_calls>"), {.lost_text = true}},
           {Dsml("Now:\n\n<S tool_calls>\n"), {.lost_text = true}},
           {Dsml("<S tool_calls>\n<S function name=\"run\">ls"), {.lost_text = true}},
           {Dsml("<S tool_calls>\n<S invoke name=\"ru"), {.lost_text = true}},
           {Block(Call("run", "please " + Parameter("command", "ls"))), {.lost_text = true}},
           {Dsml("<S tool_calls><S invoke name=\"run\"><S parameter name=\"command\" "
                 "string=\"true\">rm -r /tmp"),
            {.unfinished_call = true}},
           {Dsml("<S tool_calls><S invoke name=\"run\">{\"command\": \"r"),
            {.unfinished_call = true}}}) {
    OutputFlaws flaws;
    ParseTwice(c.text, OutputEnd::kStop, &flaws);
    EXPECT_EQ(flaws, c.flaws) << c.text;
  }
}

TEST(OutputParserTest, OneCallOnlyIfSoAsked) {
  OutputParserOptions options = WithTools();
  options.parallel_tool_calls = false;
  const auto output = ParseOutput(
      Block(Call("run", Parameter("command", "a")) + Call("run", Parameter("command", "b"))),
      options, OutputEnd::kStop);
  EXPECT_EQ(output.tool_calls, (std::vector<ParsedToolCall>{{"run", R"({"command": "a"})"}}));
}

TEST(OutputParserTest, ForcedCallsBeginInThePrompt) {
  OutputParserOptions options = WithTools(OutputStart::kToolCalls);
  const std::string call = Call("run", Parameter("command", "a"));
  const ParsedOutput expected{"", "", {{"run", R"({"command": "a"})"}}};
  EXPECT_EQ(ParseOutput(call + Dsml("</S tool_calls>"), options, OutputEnd::kStop), expected);
  options.start = OutputStart::kArguments;
  options.forced_tool = "run";
  EXPECT_EQ(
      ParseOutput(Parameter("command", "a") + Dsml("\n</S invoke>"), options, OutputEnd::kStop),
      expected);
  EXPECT_EQ(ParseOutput("", options, OutputEnd::kStop), (ParsedOutput{"", "", {{"run", "{}"}}}));
}

TEST(OutputParserTest, WithoutAReasoningParserThinkTagsAreText) {
  OutputParserOptions options;
  options.start = OutputStart::kReasoning;
  options.parse_reasoning = false;
  const ParsedOutput output =
      ParseOutput("a</think>b<｜end▁of▁sentence｜>", options, OutputEnd::kStop);
  EXPECT_EQ(output, (ParsedOutput{"", "a</think>b", {}}));
}

TEST(OutputParserTest, KnowsWhetherItReasons) {
  OutputParser parser(WithTools(OutputStart::kReasoning));
  std::vector<OutputDelta> deltas;
  EXPECT_TRUE(parser.in_reasoning());
  parser.PushText("hm</think>", &deltas);
  EXPECT_FALSE(parser.in_reasoning());
}

TEST(OutputParserTest, MarkersInsideValues) {
  const std::string value = "<think>x</think> <｜User｜>";
  const auto output =
      ParseOutput(Block(Call("run", Parameter("command", value + "<｜end▁of▁sentence｜>"))),
                  WithTools(), OutputEnd::kStop);
  EXPECT_EQ(ParseJson(output.tool_calls[0].arguments)->Find("command")->string(), value);
}

TEST(OutputParserTest, EmptyNamesAreKept) {
  const auto output =
      ParseOutput(Block(Call("run", Parameter("", "x"))), WithTools(), OutputEnd::kStop);
  EXPECT_EQ(output.tool_calls[0].arguments, R"({"": "x"})");
}

TEST(OutputParserTest, ABrokenObjectBecomesOneParameter) {
  const auto output =
      ParseOutput(Block(Call("run", "{\"command\": ls}")), WithTools(), OutputEnd::kStop);
  EXPECT_EQ(output.tool_calls[0].arguments, R"({"arguments": "{\"command\": ls}"})");
}

// Random sequences of tags, markers and text: the same result for every cutting, arguments are JSON
// whenever the output ended by itself.
TEST(OutputParserTest, RandomOutputsDoNotDependOnTheCutting) {
  const unsigned seed = 77;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const std::vector<std::string> parts = {"text ",
                                          "\n\n",
                                          " ",
                                          "<",
                                          "</",
                                          "你",
                                          "<think>",
                                          "</think>",
                                          "<｜User｜>",
                                          "<｜end▁of▁sentence｜>",
                                          "｜DSML｜",
                                          Dsml("<S "),
                                          Dsml("</S "),
                                          "tool_calls>",
                                          "invoke name=\"run\">",
                                          "\"",
                                          ">",
                                          Dsml("<S tool_calls>\n"),
                                          Dsml("</S tool_calls>"),
                                          Dsml("<S toolcalls>"),
                                          Dsml("<S invoke name=\"run\">\n"),
                                          Dsml("<S invoke name=\"get_weather\" >"),
                                          Dsml("<S invoke name=\"other\">"),
                                          Dsml("</S invoke>\n"),
                                          Dsml("<S parameter name=\"command\" string=\"true\">"),
                                          Dsml("<S parameter name=\"days\">"),
                                          Dsml("<S parameter name=\"arguments\" string=\"false\">"),
                                          Dsml("</S parameter>\n"),
                                          "{\"command\": 1}",
                                          "{",
                                          "12",
                                          "null",
                                          "<｜",
                                          "\\",
                                          "\x01"};
  for (int round = 0; round < 30'000; ++round) {
    OutputCase c;
    for (size_t n = rng() % 16; n > 0; --n) c.text += parts[rng() % parts.size()];
    c.options = WithTools(rng() % 2 == 0 ? OutputStart::kReasoning : OutputStart::kContent);
    c.end = rng() % 2 == 0 ? OutputEnd::kStop : OutputEnd::kLength;
    c.expected = ParseOutput(c.text, c.options, c.end);
    const size_t longest = 1 + rng() % 12;
    const auto lengths = [&] { return 1 + rng() % longest; };
    ASSERT_EQ(ParseInPieces(c, lengths), c.expected) << c.text;
    ASSERT_EQ(ParseMarked(c, lengths), c.expected) << c.text;
    if (c.end == OutputEnd::kLength) continue;
    for (const ParsedToolCall& call : c.expected.tool_calls) {
      const auto arguments = ParseJson(call.arguments);
      ASSERT_TRUE(arguments.ok() && arguments->is_object()) << c.text << "\n" << call.arguments;
    }
  }
}

// Work, not time: what a hostile or long output costs is counted in seconds of a generous limit by
// CTest; these sizes take minutes if anything is quadratic.
TEST(OutputParserTest, LongAndHostileOutputsAreLinear) {
  const std::string mega(1 << 20, 'x');
  std::string argument;
  for (int i = 0; i < 1 << 17; ++i) argument += "if (a<b) ";
  std::string repeats, less, quotes;
  for (int i = 0; i < 50'000; ++i) {
    repeats += Dsml("<S invoke name=\"run\">");
    less += "<<</<";
    quotes += Dsml("<S parameter name=\"a");
  }
  const std::string open =
      Dsml("<S tool_calls><S invoke name=\"run\"><S parameter name=\"command\" string=\"true\">");
  for (const std::string& text :
       {mega, open + argument, repeats, less, quotes, open + quotes, open + less,
        Dsml("<S invoke name=\"run\">{") + argument, open + std::string(1 << 20, ' '),
        Dsml("<S invoke name=\"run\">") + std::string(1 << 20, ' ')}) {
    OutputCase c{"", text, WithTools(), OutputEnd::kStop, {}};
    ParseInPieces(c, [] { return 4; });
  }
}

TEST(OutputParserTest, LongValuesStreamWhileTheyArrive) {
  OutputParser parser(WithTools());
  std::vector<OutputDelta> deltas;
  parser.PushText(
      Dsml("<S tool_calls><S invoke name=\"run\"><S parameter name=\"command\" string=\"true\">"),
      &deltas);
  for (int i = 0; i < 1000; ++i) {
    deltas.clear();
    parser.PushText("a<b>c ", &deltas);
    ASSERT_EQ(deltas.size(), 1u);
    ASSERT_EQ(deltas[0].text, "a<b>c ");
  }
}

}  // namespace
}  // namespace fulgur::text
