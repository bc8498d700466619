#include "server/tokenize_endpoints.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/answer_json.h"
#include "server/chat_request.h"
#include "server/json_writer.h"
#include "server/request_fields.h"

namespace fulgur::server {
namespace {

absl::Status NeedTokenizer(const ServingContext& context) {
  if (context.tokenizer != nullptr) return absl::OkStatus();
  return UnsupportedError("This server runs without a tokenizer (--skip-tokenizer-init).");
}

absl::StatusOr<RequestFields> ReadFields(const ServingContext& context, std::string body) {
  RETURN_IF_ERROR(NeedTokenizer(context));
  ASSIGN_OR_RETURN(RequestFields fields, RequestFields::Parse(std::move(body)));
  std::string model;
  RETURN_IF_ERROR(fields.Read("model", &model));
  RETURN_IF_ERROR(CheckModelName(*context.options, model));
  return fields;
}

absl::StatusOr<std::string> TokenizeBody(const ServingContext& context, std::string body) {
  ASSIGN_OR_RETURN(RequestFields fields, ReadFields(context, std::move(body)));
  bool show_strings = false;
  bool adds_bos = true;  // V4 tokenizers add nothing either way
  RETURN_IF_ERROR(fields.Read("return_token_strs", &show_strings));
  RETURN_IF_ERROR(fields.Read("add_special_tokens", &adds_bos));
  JobPrompt prompt;
  if (fields.Has("messages")) {
    ASSIGN_OR_RETURN(prompt, EncodeConversation(context, fields));
  } else if (fields.Has("prompt")) {
    RETURN_IF_ERROR(fields.Read("prompt", &prompt.text));
    prompt.tokens = context.tokenizer->Encode(prompt.text);
  } else {
    return MalformedError("prompt: Field required (or `messages`).", "prompt");
  }
  JsonWriter json;
  json.BeginObject().Field("count", prompt.tokens.size());
  json.Field("max_model_len", context.max_model_len).Key("tokens");
  WriteIds(prompt.tokens, &json);
  json.Key("token_strs");
  if (show_strings) {
    json.BeginArray();
    for (int32_t id : prompt.tokens) json.String(context.tokenizer->TokenSpelling(id));
    json.EndArray();
  } else {
    json.Null();
  }
  json.EndObject();
  return json.Take();
}

absl::StatusOr<std::string> DetokenizeBody(const ServingContext& context, std::string body) {
  ASSIGN_OR_RETURN(RequestFields fields, ReadFields(context, std::move(body)));
  if (!fields.Has("tokens")) return MalformedError("tokens: Field required.", "tokens");
  std::vector<int32_t> ids;
  RETURN_IF_ERROR(fields.Read("tokens", &ids));
  for (int32_t id : ids) {
    if (id >= context.vocab_size) {
      return RuleError(fmt::format("Token id {} is out of vocabulary", id), "tokens");
    }
  }
  JsonWriter json;
  json.BeginObject().Field("prompt", context.tokenizer->Decode(ids)).EndObject();
  return json.Take();
}

void Respond(Core& core, Call call,
             absl::StatusOr<std::string> (*work)(const ServingContext&, std::string)) {
  absl::Status type = CheckContentType(call.request);
  if (!type.ok()) return call.response->Send(ToErrorResponse(type));
  core.Offload(
      std::move(call),
      [&core, work](std::string body) { return work(core.serving(), std::move(body)); },
      [](const Call& back, absl::StatusOr<std::string> body) {
        if (!body.ok()) return back.response->Send(ToErrorResponse(body.status()));
        SendJson(*back.response, *std::move(body));
      });
}

}  // namespace

void Tokenize(Core& core, Call call) { Respond(core, std::move(call), TokenizeBody); }
void Detokenize(Core& core, Call call) { Respond(core, std::move(call), DetokenizeBody); }

void ShowTokenizer(Core& core, const Call& call) {
  absl::Status status = NeedTokenizer(core.serving());
  if (!status.ok()) return call.response->Send(ToErrorResponse(status));
  JsonWriter json;
  json.BeginObject().Field("tokenizer_class", "PreTrainedTokenizerFast");
  json.Field("vocab_size", core.serving().tokenizer->vocab_size());
  json.Field("model_max_length", core.serving().max_model_len).EndObject();
  SendJson(*call.response, json.Take());
}

}  // namespace fulgur::server
