#include "server/answer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/utf8.h"

namespace fulgur::server {
namespace {

using engine::TokenLogprob;

constexpr float kLowestLogprob = -9999.0F;  // stands for minus infinity, which JSON lacks

float Finite(float logprob) {
  return std::isnan(logprob) ? kLowestLogprob : std::max(logprob, kLowestLogprob);
}

std::string_view TokenBytes(const AnswerContext& context, int32_t token) {
  return context.tokenizer == nullptr ? std::string_view() : context.tokenizer->TokenBytes(token);
}

// The chosen token first, then the most probable others, `count` besides it.
std::vector<TokenLogprob> ChosenFirst(const engine::OutputToken& token, size_t count) {
  std::vector<TokenLogprob> top;
  top.push_back(token.logprob.value_or(TokenLogprob{token.token, 0.0F, 1}));
  for (const TokenLogprob& other : token.alternatives) {
    if (other.token != token.token && top.size() <= count) top.push_back(other);
  }
  return top;
}

void WriteTokenFields(const AnswerContext& context, const TokenLogprob& entry, JsonWriter* json) {
  json->Field("token", TokenText(context, entry.token));
  json->Key("logprob").Number(Finite(entry.logprob));
  json->Key("bytes").BeginArray();
  for (char byte : TokenBytes(context, entry.token)) {
    json->Integer(static_cast<unsigned char>(byte));
  }
  json->EndArray();
}

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string AnswerHead(const AnswerContext& context, std::string_view object) {
  JsonWriter json;
  json.BeginObject().Field("id", context.id).Field("object", object);
  json.Field("created", context.created).Field("model", context.model);
  return json.Take();
}

void WriteUsage(const AnswerContext& context, const Usage& usage, JsonWriter* json) {
  json->BeginObject().Field("prompt_tokens", usage.prompt_tokens);
  json->Field("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  json->Field("completion_tokens", usage.completion_tokens);
  json->Key("prompt_tokens_details");
  if (context.options->enable_prompt_tokens_details) {
    json->BeginObject().Field("cached_tokens", usage.cached_tokens).EndObject();
  } else {
    json->Null();
  }
  json->Key("completion_tokens_details");
  if (context.job->parser && context.job->parser->parse_reasoning) {
    json->BeginObject().Field("reasoning_tokens", usage.reasoning_tokens).EndObject();
  } else {
    json->Null();
  }
  json->EndObject();
}

void WriteIds(const std::vector<int32_t>& ids, JsonWriter* json) {
  json->BeginArray();
  for (int32_t id : ids) json->Integer(id);
  json->EndArray();
}

void WriteTokenIds(const std::vector<engine::OutputToken>& tokens, JsonWriter* json) {
  json->BeginArray();
  for (const auto& token : tokens) json->Integer(token.token);
  json->EndArray();
}

void WriteStopReason(const ChoiceFinish& finish, JsonWriter* json) {
  json->Key("stop_reason");
  if (finish.stop_string) {
    json->String(*finish.stop_string);
  } else if (finish.stop_token) {
    json->Integer(*finish.stop_token);
  } else {
    json->Null();
  }
}

std::string TokenText(const AnswerContext& context, int32_t token) {
  if (context.request().return_tokens_as_token_ids || context.tokenizer == nullptr) {
    return fmt::format("token_id:{}", token);
  }
  return text::RepairUtf8(context.tokenizer->TokenBytes(token));
}

void WriteChatLogprobs(const AnswerContext& context, const std::vector<engine::OutputToken>& tokens,
                       JsonWriter* json) {
  int64_t asked = context.request().sampling.num_logprobs.value_or(0);
  json->BeginObject().Key("content").BeginArray();
  for (const engine::OutputToken& token : tokens) {
    auto top = ChosenFirst(token, static_cast<size_t>(asked));
    json->BeginObject();
    WriteTokenFields(context, top.front(), json);
    top.resize(std::min(top.size(), static_cast<size_t>(asked)));
    json->Key("top_logprobs").BeginArray();
    for (const TokenLogprob& entry : top) {
      json->BeginObject();
      WriteTokenFields(context, entry, json);
      json->EndObject();
    }
    json->EndArray().EndObject();
  }
  json->EndArray().EndObject();
}

void CompletionLogprobs::AddRow(int32_t token, std::vector<TokenLogprob> top) {
  Row row{TokenText(context_, token), offset_, std::move(top)};
  offset_ += CountCharacters(row.token);
  rows_.push_back(std::move(row));
}

void CompletionLogprobs::AddPrompt(const std::vector<int32_t>& prompt,
                                   const PromptLogprobs& logprobs) {
  for (size_t i = 0; i < prompt.size(); ++i) {
    std::vector<TokenLogprob> top;
    if (i < logprobs.size()) top = logprobs[i];
    auto own = std::find_if(top.begin(), top.end(),
                            [&](const TokenLogprob& entry) { return entry.token == prompt[i]; });
    if (own != top.end()) std::rotate(top.begin(), own, own + 1);
    AddRow(prompt[i], std::move(top));
  }
}

void CompletionLogprobs::Add(const engine::OutputToken& token) {
  auto asked = static_cast<size_t>(context_.request().sampling.num_logprobs.value_or(0));
  AddRow(token.token, ChosenFirst(token, asked));
}

void CompletionLogprobs::Write(JsonWriter* json) const {
  json->BeginObject().Key("text_offset").BeginArray();
  for (const Row& row : rows_) json->Integer(static_cast<int64_t>(row.offset));
  json->EndArray().Key("token_logprobs").BeginArray();
  for (const Row& row : rows_) {
    if (row.top.empty()) {
      json->Null();
    } else {
      json->Number(Finite(row.top.front().logprob));
    }
  }
  json->EndArray().Key("tokens").BeginArray();
  for (const Row& row : rows_) json->String(row.token);
  json->EndArray().Key("top_logprobs").BeginArray();
  for (const Row& row : rows_) {
    if (row.top.empty()) {
      json->Null();
      continue;
    }
    json->BeginObject();
    std::vector<std::string> seen;  // tokens that are parts of characters may look alike
    for (const TokenLogprob& entry : row.top) {
      std::string text = TokenText(context_, entry.token);
      if (std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
      json->Key(text).Number(Finite(entry.logprob));
      seen.push_back(std::move(text));
    }
    json->EndObject();
  }
  json->EndArray().EndObject();
}

void WritePromptLogprobs(const AnswerContext& context, const PromptLogprobs& logprobs,
                         JsonWriter* json) {
  json->BeginArray();
  for (const auto& entries : logprobs) {
    if (entries.empty()) {
      json->Null();
      continue;
    }
    json->BeginObject();
    for (const TokenLogprob& entry : entries) {
      json->Key(std::to_string(entry.token)).BeginObject();
      json->Key("logprob").Number(Finite(entry.logprob));
      json->Field("rank", entry.rank);
      json->Field("decoded_token", text::RepairUtf8(TokenBytes(context, entry.token)));
      json->EndObject();
    }
    json->EndObject();
  }
  json->EndArray();
}

HeaderList EventStreamHeaders() {
  return {{"Content-Type", "text/event-stream; charset=utf-8"}, {"Cache-Control", "no-cache"}};
}

std::string EventFrame(std::string_view json) { return fmt::format("data: {}\n\n", json); }

void SendJson(ResponseStream& response, std::string body) {
  response.Send({200, {{"Content-Type", "application/json"}}, std::move(body)});
}

}  // namespace fulgur::server
