// Sentences of the workbook and the report in English and Chinese, side by side.
//
// A text is a constant with named places, such as "{count} cells are slower". Both languages must
// name the same places; the compiler refuses a pair that does not. Numbers are formatted before
// they are put in, so no sentence carries a number of its own.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fulgur::bench {

enum class Language { kEnglish, kChinese };

class Text {
 public:
  consteval Text(std::string_view english, std::string_view chinese)
      : english_(english), chinese_(chinese) {
    if (!PlacesWithin(english, chinese) || !PlacesWithin(chinese, english)) {
      throw "the languages name different places";
    }
  }

  constexpr std::string_view In(Language language) const {
    return language == Language::kEnglish ? english_ : chinese_;
  }

 private:
  // Whether each {place} of one text occurs in the other.
  static constexpr bool PlacesWithin(std::string_view one, std::string_view other) {
    for (size_t open = one.find('{'); open != one.npos; open = one.find('{', open + 1)) {
      const size_t close = one.find('}', open);
      if (close == one.npos) return false;
      if (other.find(one.substr(open, close - open + 1)) == other.npos) return false;
    }
    return true;
  }

  std::string_view english_;
  std::string_view chinese_;
};

using TextArguments = std::initializer_list<std::pair<std::string_view, std::string>>;

// Speaks one language. Cheap to copy.
class Voice {
 public:
  explicit Voice(Language language) : language_(language) {}

  Language language() const { return language_; }

  // The text with its places filled; every place needs an argument.
  std::string operator()(const Text& text, TextArguments arguments = {}) const;

  // "a, b and c" in the language's manner.
  std::string List(const std::vector<std::string>& parts) const;

 private:
  Language language_;
};

}  // namespace fulgur::bench
