// Regular expressions over model answers: PCRE2, which matches long texts without recursion.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fulgur::bench {

class Pattern {
 public:
  // Aborts on a pattern that does not compile: patterns are constants of this program.
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // A match of the expression, or of its first group if it has one.
  struct Match {
    std::string_view text;
    size_t end = 0;  // of the whole match
  };
  std::optional<Match> First(std::string_view text, size_t from = 0) const;
  std::optional<Match> Last(std::string_view text) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace fulgur::bench
