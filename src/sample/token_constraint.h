// Limits which tokens may come next, by what was said before: the format that a request asks for.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace fulgur::sample {

// The tokens that may come next.
struct AllowedTokens {
  std::span<const uint64_t> bits;  // by token id; ids behind the last bit are not allowed
  bool end = false;                // the answer may end: end-of-sequence tokens are allowed too

  // By its bit; end-of-sequence tokens have none.
  bool Has(int32_t token) const {
    const auto id = static_cast<size_t>(token);
    return id / kWordBits < bits.size() && ((bits[id / kWordBits] >> (id % kWordBits)) & 1) != 0;
  }

  static constexpr size_t kWordBits = 64;
};

// Of one request. One thread.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Whether it limits anything yet: reasoning before an answer is free.
  virtual bool active() const = 0;
  // Valid until the next call. An error ends the request.
  virtual absl::StatusOr<AllowedTokens> Allowed() = 0;
  // `token` was said.
  virtual void Accept(int32_t token) = 0;
};

}  // namespace fulgur::sample
