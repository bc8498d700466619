// Recognises one DSML tag, a byte at a time: <｜DSML｜tool_calls>, <｜DSML｜invoke name="...">,
// <｜DSML｜parameter name="..." string="true|false"> and their closing tags. Works on marked text
// (markup.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fulgur::text {

struct DsmlTag {
  enum class Kind {
    kBlockOpen,
    kBlockClose,
    kInvokeOpen,
    kInvokeClose,
    kParameterOpen,
    kParameterClose,
    kUnknown,  // a tag by its form, but none of the format's: <｜DSML｜foo>, <｜DSML｜invoke
               // name=x>
  };
  Kind kind;
  std::string name;        // invoke and parameter: the attribute, markers spelt out
  bool is_string = false;  // parameter: string="true"
};

class DsmlTagMatcher {
 public:
  enum class Result { kMore, kNo, kYes };

  // Begins behind a '<'.
  void Start();

  // kNo: these bytes begin no tag. kYes: the tag is complete with this byte.
  Result Push(char byte);

  const DsmlTag& tag() const { return tag_; }

  // The bytes so far are more than a '<' in a text, and may still become a tag of the format.
  bool BeginsTag() const { return state_ > State::kMark && state_ < State::kRest; }

  // The bytes so far are the header of a call, at least the beginning of its name.
  bool NamesCall() const;

 private:
  enum class State {
    kSlashOrMark,
    kMark,
    kKeyword,
    kBeforeName,
    kNameKey,
    kName,
    kAfterName,
    kStringKey,
    kFlag,
    kBeforeEnd,
    kRest,  // up to the end of an unknown tag
  };

  Result PushKnown(char byte);
  Result Rest(char byte);
  Result Keyword(char byte);
  Result KeywordEnd(char byte);
  Result Literal(char byte, std::string_view literal, State next);
  Result Name(char byte);
  Result AfterName(char byte);
  Result Flag(char byte);
  Result End(char byte);

  State state_ = State::kSlashOrMark;
  bool closing_ = false;
  bool space_seen_ = false;
  std::string word_;  // the keyword, attribute value or part of a literal being read
  DsmlTag tag_;
};

}  // namespace fulgur::text
