// CHECK macros for broken invariants: they print the condition with both values and abort.
// User input never reaches one; expected failures are absl::Status.
#pragma once

#include <cstdlib>
#include <iostream>

namespace fulgur::base {

[[noreturn]] inline void FailCheck(const char* file, int line, const char* condition) {
  std::cerr << file << ":" << line << ": broken invariant: " << condition << std::endl;
  std::abort();
}

template <typename A, typename B>
[[noreturn]] void FailCheck(const char* file, int line, const char* condition, const A& a,
                            const B& b) {
  std::cerr << file << ":" << line << ": broken invariant: " << condition << " (" << a << " vs. "
            << b << ")" << std::endl;
  std::abort();
}

}  // namespace fulgur::base

#define CHECK(condition)                        \
  (__builtin_expect(!!(condition), 1) ? (void)0 \
                                      : ::fulgur::base::FailCheck(__FILE__, __LINE__, #condition))

#define FULGUR_CHECK_OP(a, op, b)                                                           \
  do {                                                                                      \
    const auto& check_a_ = (a);                                                             \
    const auto& check_b_ = (b);                                                             \
    if (!(check_a_ op check_b_)) {                                                          \
      ::fulgur::base::FailCheck(__FILE__, __LINE__, #a " " #op " " #b, check_a_, check_b_); \
    }                                                                                       \
  } while (false)

#define CHECK_EQ(a, b) FULGUR_CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) FULGUR_CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) FULGUR_CHECK_OP(a, <, b)
#define CHECK_LE(a, b) FULGUR_CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) FULGUR_CHECK_OP(a, >, b)
#define CHECK_GE(a, b) FULGUR_CHECK_OP(a, >=, b)
