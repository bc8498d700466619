#include "cli/sse_reader.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::cli {
namespace {

using ::testing::ElementsAre;

TEST(SseReaderTest, IsIndependentOfTheCut) {
  const std::string stream =
      ": comment\n\ndata: one\n\nevent: x\ndata:two\ndata: lines\r\n\r\nid: 3\n\ndata:\n\n"
      "data: [DONE]\n\ndata: unfinished";
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    SseReader reader;
    std::vector<std::string> events = reader.Feed(std::string_view(stream).substr(0, cut));
    for (std::string& event : reader.Feed(std::string_view(stream).substr(cut))) {
      events.push_back(std::move(event));
    }
    EXPECT_THAT(events, ElementsAre("one", "two\nlines", "", "[DONE]")) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace fulgur::cli
