#include "cli/near_miss.h"

#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace fulgur::cli {
namespace {

TEST(NearMissTest, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("serve", "sevre"), 1);  // neighbours swapped
  EXPECT_EQ(EditDistance("port", "ports"), 1);
}

TEST(NearMissTest, SuggestsOnlyWhatIsClose) {
  const std::vector<std::string_view> known = {"serve", "chat", "version"};
  EXPECT_EQ(NearMiss("server", known), "serve");
  EXPECT_EQ(NearMiss("caht", known), "chat");
  EXPECT_EQ(NearMiss("bench", known), std::nullopt);
  EXPECT_EQ(NearMiss("", known), std::nullopt);
}

}  // namespace
}  // namespace fulgur::cli
