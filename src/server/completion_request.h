// From the body of POST /v1/completions to a job.
#pragma once

#include "absl/status/statusor.h"
#include "server/job.h"
#include "server/request_fields.h"

namespace fulgur::server {

// Pure and thread-safe; may take long for a long prompt.
absl::StatusOr<Job> MakeCompletionJob(const ServingContext& context, const RequestFields& fields);

}  // namespace fulgur::server
