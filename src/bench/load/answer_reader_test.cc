#include "bench/load/answer_reader.h"

#include <gmock/gmock.h>

#include "bench/load/sse_messages.h"

namespace fulgur::bench {
namespace {

using enum FrameKind;

FrameKind KindOf(std::string_view data) {
  AnswerReader reader(/*keep_text=*/true);
  AnswerSoFar answer;
  reader.ReadMessage(data, 1, answer);
  return answer.frames.at(0).kind;
}

TEST(AnswerReader, TellsMessagesApart) {
  EXPECT_EQ(KindOf(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})"), kRole);
  EXPECT_EQ(KindOf(R"({"choices":[{"delta":{"content":"a"}}]})"), kContent);
  EXPECT_EQ(KindOf(R"({"choices":[{"text":"a"}]})"), kContent);
  EXPECT_EQ(KindOf(R"({"choices":[{"delta":{"reasoning":"a"}}]})"), kReasoning);
  EXPECT_EQ(KindOf(R"({"choices":[{"delta":{"reasoning_content":"a","content":null}}]})"),
            kReasoning);
  EXPECT_EQ(KindOf(R"({"choices":[{"delta":{"tool_calls":[{"function":{"name":"f"}}]}}]})"), kTool);
  EXPECT_EQ(KindOf(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})"), kFinish);
  EXPECT_EQ(KindOf(R"({"choices":[],"usage":{"completion_tokens":3}})"), kUsage);
  EXPECT_EQ(KindOf(R"({"error":{"message":"no"}})"), kError);
  EXPECT_EQ(KindOf("[DONE]"), kDone);
}

TEST(AnswerReader, CountsTokensOfFramesByRunningUsage) {
  AnswerReader reader(true);
  AnswerSoFar answer;
  for (const char* data :
       {R"({"choices":[{"delta":{"content":"ab"}}],"usage":{"completion_tokens":2}})",
        R"({"choices":[{"delta":{"content":"c"}}],"usage":null})",
        R"({"choices":[{"delta":{"content":"de"}}],"usage":{"completion_tokens":5}})"}) {
    reader.ReadMessage(data, 1, answer);
  }
  EXPECT_EQ(answer.frames[0].tokens, 2);
  EXPECT_EQ(answer.frames[1].tokens, std::nullopt);
  EXPECT_EQ(answer.frames[2].tokens, 3);
  EXPECT_EQ(answer.text, "abcde");
}

TEST(AnswerReader, SkipsWhatIsNoJson) {
  AnswerReader reader(true);
  AnswerSoFar answer;
  for (const char* data : {"{", "17", "", "\xff\xfe", "{\"choices\": 3}"}) {
    reader.ReadMessage(data, 1, answer);
  }
  EXPECT_EQ(answer.unreadable, 4);
}

TEST(AnswerReader, ReadsEventsOfTheResponsesApi) {
  AnswerReader reader(true);
  AnswerSoFar answer;
  for (const char* data :
       {R"({"type":"response.created","response":{"id":"r","error":null,"usage":null}})",
        R"({"type":"response.reasoning_text.delta","delta":"hm"})",
        R"({"type":"response.reasoning_summary_text.delta","delta":"!"})",
        R"({"type":"response.output_text.delta","delta":""})",
        R"({"type":"response.output_text.delta","delta":"one "})",
        R"({"type":"response.output_text.delta","delta":"two"})",
        R"({"type":"response.output_text.done","text":"one two"})",
        R"({"type":"response.function_call_arguments.delta","delta":"{}"})",
        R"({"type":"response.completed","response":{"error":null,"usage":{"input_tokens":7,
            "output_tokens":5,"input_tokens_details":{"cached_tokens":4},
            "output_tokens_details":{"reasoning_tokens":2}}}})"}) {
    reader.ReadMessage(data, 1, answer);
  }
  std::vector<FrameKind> kinds;
  for (const Frame& frame : answer.frames) kinds.push_back(frame.kind);
  EXPECT_THAT(kinds, testing::ElementsAre(kRole, kReasoning, kReasoning, kRole, kContent, kContent,
                                          kRole, kTool, kUsage));
  EXPECT_EQ(answer.text, "one two{}");
  EXPECT_EQ(answer.reasoning, "hm!");
  EXPECT_EQ(answer.usage.prompt_tokens, 7);
  EXPECT_EQ(answer.usage.completion_tokens, 5);
  EXPECT_EQ(answer.usage.cached_tokens, 4);
  EXPECT_EQ(answer.usage.reasoning_tokens, 2);
  EXPECT_TRUE(answer.done);
  EXPECT_FALSE(answer.error);
}

TEST(AnswerReader, ReadsFailuresOfTheResponsesApi) {
  for (const char* data :
       {R"({"type":"error","code":"x","message":"no"})",
        R"({"type":"response.failed","response":{"error":{"code":"x","message":"no"}}})"}) {
    AnswerReader reader(true);
    AnswerSoFar answer;
    reader.ReadMessage(data, 1, answer);
    EXPECT_EQ(answer.frames.at(0).kind, kError) << data;
    EXPECT_THAT(answer.error.value_or(""), testing::HasSubstr("no")) << data;
  }
}

TEST(AnswerReader, ReadsAWholeBodyOfTheResponsesApi) {
  AnswerReader reader(true);
  AnswerSoFar answer;
  reader.ReadWhole(R"({"object":"response","error":null,"output":[
      {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
      {"type":"message","content":[{"type":"output_text","text":"yes"}]},
      {"type":"function_call","name":"f","arguments":"{}"}],
      "usage":{"input_tokens":3,"output_tokens":4}})",
                   1, answer);
  EXPECT_EQ(answer.frames.at(0).kind, kContent);
  EXPECT_EQ(answer.text, "yesf{}");
  EXPECT_EQ(answer.reasoning, "hm");
  EXPECT_EQ(answer.usage.completion_tokens, 4);
}

struct Message {
  std::string data;
  int64_t arrival;
  bool operator==(const Message&) const = default;
};

std::vector<Message> Read(std::string_view bytes, size_t step) {
  std::vector<Message> messages;
  SseMessages reader([&](std::string_view data, int64_t arrival) {
    messages.push_back({std::string(data), arrival});
  });
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Feed(bytes.substr(at, step), static_cast<int64_t>(at));
  }
  reader.Finish();
  return messages;
}

TEST(SseMessages, HoweverTheStreamIsCut) {
  constexpr std::string_view kStream =
      ": hello\n\ndata: one\n\ndata:two\r\ndata: three\r\n\r\nevent: x\rdata: four\r\rdata: "
      "\xc3\xa4"
      "\n\ndata: [DONE]";
  const auto whole = Read(kStream, kStream.size());
  ASSERT_EQ(whole.size(), 5U);
  EXPECT_EQ(whole[1].data, "two\nthree");
  EXPECT_EQ(whole[4].data, "[DONE]");
  for (size_t step = 1; step < 20; ++step) {
    const auto pieces = Read(kStream, step);
    ASSERT_EQ(pieces.size(), whole.size()) << step;
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(pieces[i].data, whole[i].data) << step;
  }
}

TEST(SseMessages, AnEndlessLineDoesNotFillTheMemory) {
  size_t length = 0;
  int messages = 0;
  SseMessages reader([&](std::string_view data, int64_t) {
    length = data.size();
    ++messages;
  });
  const std::string megabyte(1 << 20, 'x');
  reader.Feed("data: ", 0);
  for (int i = 0; i < 40; ++i) reader.Feed(megabyte, 0);
  reader.Feed("\n\ndata: next\n\n", 0);
  EXPECT_EQ(messages, 2);
  EXPECT_EQ(length, 4U);
  for (int i = 0; i < 40; ++i) reader.Feed("data: " + megabyte + "\n", 0);
  reader.Feed("\n", 0);
  EXPECT_EQ(messages, 3);
  EXPECT_LE(length, size_t{17} << 20);
}

TEST(SseMessages, ArrivalIsThatOfTheFirstByte) {
  std::vector<int64_t> arrivals;
  SseMessages reader([&](std::string_view, int64_t arrival) { arrivals.push_back(arrival); });
  reader.Feed("data: a\n\ndat", 10);
  reader.Feed("a: b\n", 20);
  reader.Feed("\ndata: c\n\n", 30);
  EXPECT_THAT(arrivals, testing::ElementsAre(10, 10, 30));
}

}  // namespace
}  // namespace fulgur::bench
