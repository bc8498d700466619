// What the messages of OpenAI's Responses API carry (POST /v1/responses): events that are told
// apart by their "type", and a body whose "object" is "response".
#pragma once

#include "bench/load/answer_reader.h"
#include "bench/stats/record.h"
#include "simdjson.h"

namespace fulgur::bench {

// Whether an object belongs to this API.
bool IsResponsesObject(simdjson::dom::object root);

// Adds what one event of a stream, or a whole body, says to the answer; returns its kind.
FrameKind ReadResponsesObject(simdjson::dom::object root, bool keep_text, AnswerSoFar& answer);

}  // namespace fulgur::bench
