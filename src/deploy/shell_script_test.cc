#include "deploy/shell_script.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace fulgur::deploy {
namespace {

std::vector<std::string> Texts(const ShellCommand& command) {
  std::vector<std::string> texts;
  for (const ShellWord& word : command.words) texts.push_back(word.text);
  return texts;
}

using Words = std::vector<std::string>;

TEST(ShellScript, WordsQuotesAndContinuedLines) {
  const auto commands = ReadShellScript(
      "# a comment\nvllm serve /m \\\n  --a 'x \"y\"' \\\n  --b=\"{\\\"k\\\":1}\" --c $HOME # "
      "end\n");
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(Texts(commands[0]),
            (Words{"vllm", "serve", "/m", "--a", "x \"y\"", "--b={\"k\":1}", "--c", "$HOME"}));
  EXPECT_EQ(commands[0].line, 2);
  EXPECT_EQ(commands[0].words[5].line, 4);
  EXPECT_FALSE(commands[0].words[5].unknown);
  EXPECT_TRUE(commands[0].words[7].unknown);
}

TEST(ShellScript, VariablesOfTheScriptAreKnownLater) {
  const auto commands = ReadShellScript(
      "export IMAGE=${IMAGE:-quay.io/x:v1} N=4\nP=$(hostname)\ndocker run \"$IMAGE\" -n ${N} $P $2",
      {{"2", "7100"}});
  ASSERT_EQ(commands.size(), 3U);
  EXPECT_EQ(commands[0].assignments.at("IMAGE").text, "quay.io/x:v1");
  EXPECT_EQ(Texts(commands[2]), (Words{"docker", "run", "quay.io/x:v1", "-n", "4", "$P", "7100"}));
  EXPECT_TRUE(commands[2].words[5].unknown);
}

TEST(ShellScript, HereDocuments) {
  const auto commands = ReadShellScript(
      "cat > a.sh <<'END'\nvllm serve $M\nEND\ncat <<-E2 >b\n\tx\n\tE2\necho done\n");
  ASSERT_EQ(commands.size(), 3U);
  ASSERT_EQ(commands[0].documents.size(), 1U);
  EXPECT_EQ(commands[0].documents[0].body, "vllm serve $M\n");
  EXPECT_TRUE(commands[0].documents[0].quoted);
  EXPECT_EQ(commands[0].documents[0].line, 2);
  EXPECT_EQ(Texts(commands[0]), (Words{"cat"}));
  EXPECT_FALSE(commands[1].documents[0].quoted);
  EXPECT_EQ(Texts(commands[2]), (Words{"echo", "done"}));
}

TEST(ShellScript, SeparatorsRedirectionsAndSubstitutions) {
  const auto commands =
      ReadShellScript("a 1 2>&1 | b && c >/dev/null & d; if [ -f x ]; then e `f g` $(h (i)); fi");
  ASSERT_EQ(commands.size(), 7U);
  EXPECT_EQ(Texts(commands[0]), (Words{"a", "1"}));
  EXPECT_EQ(Texts(commands[1]), (Words{"b"}));
  EXPECT_EQ(Texts(commands[2]), (Words{"c"}));
  EXPECT_EQ(Texts(commands[5]), (Words{"e", "`f g`", "$(h (i))"}));
}

TEST(ShellScript, BrokenTextEnds) {
  for (const char* text : {"'open", "\"open", "$(open", "`open", "${open", "cat <<EOF", "\\", "<<",
                           "export", "=", "a=$(", "(", ")))", ">&"}) {
    ReadShellScript(text);
  }
}

// What this quotes, a real shell gives back.
TEST(QuoteForShell, SurvivesARealShell) {
  for (const std::string text :
       {"", "plain", R"({"a": "it's $HOME `x` \\ \" !"})", "a\nb", "*?[x]", "~", "a b", "#x"}) {
    const std::string command = "printf %s " + QuoteForShell(text) + "; printf .";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
    std::string output;
    for (int c = fgetc(pipe.get()); c != EOF; c = fgetc(pipe.get())) {
      output.push_back(static_cast<char>(c));
    }
    EXPECT_EQ(output, text + ".");
    const auto commands = ReadShellScript("x " + QuoteForShell(text));
    ASSERT_EQ(commands[0].words.size(), 2U);
    EXPECT_EQ(commands[0].words[1].text, text);
  }
}

}  // namespace
}  // namespace fulgur::deploy
