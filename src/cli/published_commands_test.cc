// Command lines as published for DeepSeek-V4 deployments, run through a real shell and understood.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/flag_parser.h"
#include "cli/flag_table.h"
#include "cli/serve_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::cli {
namespace {

constexpr char kFolder[] = "tests/cli/commands/";

// The arguments that the script's `vllm serve` gets. $1 to $7 are what launch_online_dp.py passes:
// device, port, data-parallel size, rank, address, RPC port, tensor-parallel size.
std::vector<std::string> ArgumentsOf(const std::string& script) {
  const std::string command =
      "bash -c 'vllm() { printf \"%s\\0\" \"$@\"; }; source \"$0\" 0 7100 4 0 10.0.0.1 12890 4' " +
      (kFolder + script);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::vector<std::string> words(1);
  for (int c = fgetc(pipe.get()); c != EOF; c = fgetc(pipe.get())) {
    if (c == '\0') {
      words.emplace_back();
    } else {
      words.back().push_back(static_cast<char>(c));
    }
  }
  words.pop_back();
  return words;
}

struct Published {
  std::string script;
  int64_t tensor_parallel;
  int64_t data_parallel;
  int64_t max_model_len;
  int64_t max_num_batched_tokens;
  int64_t max_num_seqs;
  int64_t block_size;
  std::string draft_method;
  std::string connector_role;  // empty: no KV connector
};

class PublishedCommandTest : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedCommandTest, IsUnderstood) {
  const Published& published = GetParam();
  std::vector<std::string> words = ArgumentsOf(published.script);
  ASSERT_GT(words.size(), 10U);
  ASSERT_EQ(words.front(), "serve");
  words.erase(words.begin());
  const auto command = ParseCommand(ServeFlags(), words);
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_TRUE(command->warnings.empty());
  const FlagValues& values = command->values;
  EXPECT_EQ(values.Int("tensor-parallel-size"), published.tensor_parallel);
  EXPECT_EQ(values.Int("data-parallel-size"), published.data_parallel);
  EXPECT_EQ(values.Int("block-size"), published.block_size);
  EXPECT_EQ(values.Json("speculative-config")["method"], published.draft_method);
  const nlohmann::json transfer = values.Json("kv-transfer-config");
  EXPECT_EQ(transfer.is_null() ? "" : transfer.value("kv_role", ""), published.connector_role);

  const auto options = BuildServeOptions(*command, {}, {});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->model, ::testing::StartsWith("/"));
  EXPECT_EQ(options->max_model_len, published.max_model_len);
  EXPECT_EQ(options->engine.limits.max_num_batched_tokens, published.max_num_batched_tokens);
  EXPECT_EQ(options->engine.limits.max_num_seqs, published.max_num_seqs);
  EXPECT_TRUE(options->server.chat.tool_parser);
  EXPECT_TRUE(options->server.chat.auto_tool_choice);
  EXPECT_TRUE(options->server.chat.reasoning_parser);

  EXPECT_TRUE(options->speculation.enabled);
  EXPECT_THAT(options->speculation.notes, ::testing::IsEmpty());

  const size_t refused = (published.tensor_parallel > 1 ? 1U : 0U) +
                         (published.data_parallel > 1 ? 1U : 0U) +
                         (published.connector_role.empty() ? 0U : 1U);
  EXPECT_EQ(RefusedFlags(values).size(), refused) << ::testing::PrintToString(RefusedFlags(values));
}

INSTANTIATE_TEST_SUITE_P(
    Scripts, PublishedCommandTest,
    ::testing::Values(
        Published{"skill_01.sh", 4, 4, 131072, 8192, 32, 128, "dspark", ""},
        Published{"tutorial_01.sh", 8, 1, 133120, 8192, 32, 128, "mtp", ""},
        Published{"tutorial_02.sh", 8, 1, 800000, 8192, 32, 128, "dspark", ""},
        Published{"tutorial_03.sh", 4, 4, 1048576, 10240, 64, 32, "mtp", ""},
        Published{"tutorial_04.sh", 4, 4, 1048576, 10240, 64, 32, "dspark", ""},
        Published{"tutorial_05.sh", 4, 4, 1048576, 8192, 16, 32, "dspark", "kv_producer"},
        Published{"tutorial_06.sh", 4, 4, 1048576, 480, 60, 32, "dspark", "kv_consumer"},
        Published{"tutorial_07.sh", 4, 4, 135000, 4096, 16, 128, "mtp", "kv_producer"},
        Published{"tutorial_08.sh", 4, 4, 135000, 60, 30, 128, "mtp", "kv_consumer"}),
    [](const auto& test) { return test.param.script.substr(0, test.param.script.find('.')); });

// No script in the folder is left out above.
TEST(PublishedCommandsTest, AllAreTested) {
  const auto files = std::filesystem::directory_iterator(kFolder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 9);
}

}  // namespace
}  // namespace fulgur::cli
