// From the body of POST /v1/chat/completions to a job: read, check, render, tokenise.
#pragma once

#include "absl/status/statusor.h"
#include "server/job.h"
#include "server/request_fields.h"

namespace fulgur::server {

// Pure and thread-safe; may take long for a long prompt.
absl::StatusOr<Job> MakeChatJob(const ServingContext& context, const RequestFields& fields);

// Renders and encodes the conversation of a /tokenize request, which generates nothing.
absl::StatusOr<JobPrompt> EncodeConversation(const ServingContext& context,
                                             const RequestFields& fields);

}  // namespace fulgur::server
