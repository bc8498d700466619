// Early returns for absl::Status and absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define FULGUR_CONCAT_INNER(a, b) a##b
#define FULGUR_CONCAT(a, b) FULGUR_CONCAT_INNER(a, b)

#define FULGUR_ASSIGN_OR_RETURN_IMPL(status_or, lhs, expression) \
  auto status_or = (expression);                                 \
  if (!status_or.ok()) return std::move(status_or).status();     \
  lhs = *std::move(status_or)

// ASSIGN_OR_RETURN(auto value, Function()): assigns the value or returns the error.
#define ASSIGN_OR_RETURN(lhs, expression) \
  FULGUR_ASSIGN_OR_RETURN_IMPL(FULGUR_CONCAT(status_or_, __LINE__), lhs, expression)
