#include "text/output_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/arguments_writer.h"
#include "text/dsml_tag.h"
#include "text/markup.h"
#include "text/utf8.h"

namespace fulgur::text {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\r\f\v";

// Text whose trailing white space is held back until something follows it.
class TrimmedTail {
 public:
  // What of the text so far, this piece included, is certain.
  std::string Push(std::string_view piece) {
    const size_t last = piece.find_last_not_of(kWhiteSpace);
    if (last == piece.npos) {
      space_.append(piece);
      return "";
    }
    behind_markup_ = false;
    std::string out = std::exchange(space_, std::string(piece.substr(last + 1)));
    return out.append(piece.substr(0, last + 1));
  }

  // White space before markup that was left out belongs to the markup if nothing follows.
  void MarkupLeftOut() { behind_markup_ = true; }

  std::string Take() { return behind_markup_ ? "" : std::exchange(space_, ""); }
  void Drop() { space_.clear(); }

 private:
  std::string space_;
  bool behind_markup_ = false;
};

}  // namespace

// The parser proper. Input is marked text (markup.h) in `buffer_`; `at_` is what comes next.
class OutputParser::Machine {
 public:
  explicit Machine(OutputParserOptions options) : options_(std::move(options)) {
    if (options_.tools == nullptr) options_.tools = std::make_shared<const ToolSchemas>();
    const bool thinking = options_.start == OutputStart::kReasoning && options_.parse_reasoning;
    state_ = thinking                                    ? State::kReasoning
             : options_.start == OutputStart::kToolCalls ? State::kTools
             : options_.start == OutputStart::kArguments ? State::kForced
                                                         : State::kContent;
  }

  void PushText(std::string_view piece, std::vector<OutputDelta>* deltas) {
    std::string repaired;
    assembler_.Push(piece, &repaired);
    scanner_.Push(repaired, &buffer_);
    Run(deltas);
  }

  void PushMarked(std::string_view marked, std::vector<OutputDelta>* deltas) {
    buffer_.append(marked);
    Run(deltas);
  }

  void Finish(OutputEnd end, std::vector<OutputDelta>* deltas) {
    std::string repaired;
    assembler_.Finish(&repaired);
    scanner_.Push(repaired, &buffer_);
    scanner_.Finish(&buffer_);
    Run(deltas);
    FinishRest();
    if (end == OutputEnd::kStop) FinishCall();
    Emit(OutputDelta::Kind::kContent, content_.Take());
    state_ = State::kAfter;
  }

  bool in_reasoning() const {
    return state_ == State::kReasoning ||
           (state_ == State::kHeldCall && held_call_.state == State::kReasoning);
  }

  int num_tool_calls() const {
    return options_.parallel_tool_calls ? num_calls_ : std::min(num_calls_, 1);
  }

  const OutputFlaws& flaws() const { return flaws_; }

 private:
  enum class State {
    kReasoning,
    kContent,
    kHeldCall,  // behind the header of a call outside of a block: a call or a quotation?
    kForced,    // inside a call whose header is in the prompt; not announced yet
    kTools,     // in a block, between calls
    kCall,      // in a call, between parameters
    kValue,     // in a parameter
    kObject,    // in a call that gives its arguments as one JSON object
    kAfter,     // behind a block
  };

  // Where to go on when a held call turns out to be one (behind the header) or not.
  struct HeldCall {
    State state;
    size_t begin;
    size_t behind_header;
    DsmlTag header;
    bool looks_like_call;  // what follows the header may follow it in a call
  };

  void Run(std::vector<OutputDelta>* deltas) {
    deltas_ = deltas;
    if (state_ == State::kForced) BeginCall(options_.forced_tool);
    while (at_ < buffer_.size()) Step();
    DropConsumed();
  }

  void Step() {
    if (in_tag_) return StepInTag();
    size_t end = at_;
    while (end < buffer_.size() && buffer_[end] != '<' && !IsMark(buffer_[end])) ++end;
    if (end > at_) {
      const size_t begin = std::exchange(at_, end);
      return OnText(std::string_view(buffer_).substr(begin, end - begin));
    }
    const char byte = buffer_[at_];
    if (byte == '<' && options_.parse_tools) {
      in_tag_ = true;
      tag_begin_ = at_++;
      matcher_.Start();
      return;
    }
    ++at_;
    if (IsMark(byte)) {
      OnMark(MarkerOfMark(byte));
    } else {
      OnText("<");
    }
  }

  void StepInTag() {
    const DsmlTagMatcher::Result result = matcher_.Push(buffer_[at_++]);
    if (result == DsmlTagMatcher::Result::kMore) return;
    in_tag_ = false;
    if (result == DsmlTagMatcher::Result::kNo || !OnTag(matcher_.tag())) NoTag(tag_begin_);
  }

  // The '<' at `begin` is text after all; what follows it is read again.
  void NoTag(size_t begin) {
    at_ = begin + 1;
    OnText("<");
  }

  // Keeps the cost of erasing proportional to the input.
  void DropConsumed() {
    const size_t needed = state_ == State::kHeldCall ? held_call_.begin
                          : in_tag_                  ? tag_begin_
                                                     : at_;
    if (needed <= buffer_.size() / 2) return;
    buffer_.erase(0, needed);
    at_ -= needed;
    tag_begin_ -= std::min(tag_begin_, needed);
    held_call_.begin -= std::min(held_call_.begin, needed);
    held_call_.behind_header -= std::min(held_call_.behind_header, needed);
  }

  // --- text ---

  void OnText(std::string_view text) {
    switch (state_) {
      case State::kReasoning:
        return Emit(OutputDelta::Kind::kReasoning, reasoning_.Push(text));
      case State::kContent:
        return Emit(OutputDelta::Kind::kContent,
                    options_.parse_tools ? content_.Push(text) : std::string(text));
      case State::kHeldCall:
        return OnTextBehindHeader(text);
      case State::kCall:
        return OnTextInCall(text);
      case State::kValue:
        return WithArguments([&](std::string* out) { writer_->ValueText(text, out); });
      case State::kObject:
        object_.append(text);
        return;
      case State::kForced:
      case State::kTools:
      case State::kAfter:
        flaws_.lost_text |= text.find_first_not_of(kWhiteSpace) != text.npos;
        return;
    }
  }

  void OnTextInCall(std::string_view text) {
    const size_t begin = text.find_first_not_of(kWhiteSpace);
    if (begin == text.npos) return;
    if (!std::exchange(call_is_fresh_, false) || text[begin] != '{') {
      flaws_.lost_text = true;
      return;
    }
    state_ = State::kObject;
    object_ = text.substr(begin);
  }

  void OnTextBehindHeader(std::string_view text) {
    if (held_call_.looks_like_call) return;
    const size_t begin = text.find_first_not_of(kWhiteSpace);
    if (begin == text.npos) return;
    if (text[begin] == '{') {
      held_call_.looks_like_call = true;
    } else {
      HeldCallIsText();
    }
  }

  void HeldCallIsText() {
    state_ = held_call_.state;
    in_quotation_ = true;
    NoTag(held_call_.begin);
  }

  // --- markers ---

  void OnMark(Marker marker) {
    const bool always_dropped = marker == Marker::kBos || marker == Marker::kEos;
    switch (state_) {
      case State::kReasoning:
      case State::kContent:
        return OnMarkInText(marker);
      case State::kValue:
      case State::kObject:
        // Inside a value only DSML tags mean anything: a file about chat formats can be written.
        if (!always_dropped) OnText(MarkerText(marker));
        return;
      case State::kHeldCall:
        if (!held_call_.looks_like_call && !always_dropped) HeldCallIsText();
        return;
      default:
        return;
    }
  }

  void OnMarkInText(Marker marker) {
    const bool thinks = marker == Marker::kThinkOpen || marker == Marker::kThinkClose;
    if (marker == Marker::kDsml || (thinks && !options_.parse_reasoning)) {
      OnText(MarkerText(marker));
    } else if (marker == Marker::kThinkOpen) {
      state_ = State::kReasoning;
    } else if (marker == Marker::kThinkClose) {
      reasoning_.Drop();
      state_ = State::kContent;
    }
  }

  // --- tags; false: this one is ordinary text here ---

  bool OnTag(const DsmlTag& tag) {
    switch (state_) {
      case State::kReasoning:
      case State::kContent:
        return OnTagInText(tag);
      case State::kHeldCall:
        return OnTagBehindHeader(tag);
      case State::kTools:
        return OnTagInBlock(tag);
      case State::kCall:
        OnTagInCall(tag);
        return true;
      case State::kValue:
        return OnTagInValue(tag);
      case State::kObject:
        return OnTagInObject(tag);
      case State::kAfter:
        if (tag.kind == DsmlTag::Kind::kBlockOpen) BeginBlock();
        flaws_.lost_text |= tag.kind == DsmlTag::Kind::kUnknown;
        return true;
      case State::kForced:
        return true;
    }
    return false;
  }

  bool OnTagInText(const DsmlTag& tag) {
    if (tag.kind == DsmlTag::Kind::kBlockOpen) {
      LeaveText();
      BeginBlock();
      return true;
    }
    if (tag.kind != DsmlTag::Kind::kInvokeOpen) return OnStrayTag(tag);
    if (!options_.tools->Declares(tag.name) || no_more_closers_) {
      in_quotation_ = true;
      return false;
    }
    held_call_ = {state_, tag_begin_, at_, tag, false};
    state_ = State::kHeldCall;
    return true;
  }

  // Tags of a call that is shown as a quotation are shown too; others are of no use to a reader.
  bool OnStrayTag(const DsmlTag& tag) {
    const bool closes_block = tag.kind == DsmlTag::Kind::kBlockClose;
    if (in_quotation_ && !closes_block) {
      in_quotation_ = tag.kind != DsmlTag::Kind::kInvokeClose;
      return false;
    }
    LeaveOutMarkup();
    return true;
  }

  void LeaveOutMarkup() {
    flaws_.stray_markup = true;
    content_.MarkupLeftOut();
  }

  // Tools follow: white space before them is the format's own.
  void LeaveText() {
    reasoning_.Drop();
    content_.Drop();
    in_quotation_ = false;
  }

  void BeginBlock() {
    state_ = State::kTools;
    calls_before_block_ = num_calls_;
  }

  bool OnTagInBlock(const DsmlTag& tag) {
    if (tag.kind == DsmlTag::Kind::kInvokeOpen) {
      BeginCall(tag.name);
    } else if (tag.kind == DsmlTag::Kind::kBlockClose) {
      state_ = State::kAfter;
      flaws_.lost_text |= num_calls_ == calls_before_block_;
    } else {
      flaws_.lost_text = true;
    }
    return true;
  }

  bool OnTagBehindHeader(const DsmlTag& tag) {
    const bool ends_block = tag.kind == DsmlTag::Kind::kBlockClose && held_call_.looks_like_call;
    if (tag.kind == DsmlTag::Kind::kInvokeClose || ends_block) {
      LeaveText();
      BeginCall(held_call_.header.name);
      at_ = held_call_.behind_header;
    } else if (tag.kind == DsmlTag::Kind::kParameterOpen) {
      held_call_.looks_like_call = true;
    } else if (!held_call_.looks_like_call) {
      HeldCallIsText();
    }
    return true;
  }

  void OnTagInCall(const DsmlTag& tag) {
    switch (tag.kind) {
      case DsmlTag::Kind::kParameterOpen:
        return BeginValue(tag);
      case DsmlTag::Kind::kInvokeClose:
        return EndCall(State::kTools);
      case DsmlTag::Kind::kInvokeOpen:
        EndCall(State::kTools);
        return BeginCall(tag.name);
      case DsmlTag::Kind::kBlockClose:
        return EndCall(State::kAfter);
      case DsmlTag::Kind::kUnknown:
        flaws_.lost_text = true;
        return;
      default:
        return;
    }
  }

  // A forgotten closing tag is made up for by what cannot be part of a value. The header of another
  // call counts only with a declared name, so that a value may speak about DSML.
  bool OnTagInValue(const DsmlTag& tag) {
    if (tag.kind == DsmlTag::Kind::kBlockOpen || tag.kind == DsmlTag::Kind::kUnknown) return false;
    if (tag.kind == DsmlTag::Kind::kInvokeOpen && !options_.tools->Declares(tag.name)) return false;
    EndValue();
    if (tag.kind != DsmlTag::Kind::kParameterClose) OnTagInCall(tag);
    return true;
  }

  bool OnTagInObject(const DsmlTag& tag) {
    if (tag.kind == DsmlTag::Kind::kBlockOpen || tag.kind == DsmlTag::Kind::kParameterClose ||
        tag.kind == DsmlTag::Kind::kUnknown) {
      return false;
    }
    // Parameters after all: what looked like an object was noise before them.
    if (tag.kind == DsmlTag::Kind::kParameterOpen) state_ = State::kCall;
    OnTagInCall(tag);
    return true;
  }

  // --- calls ---

  void BeginCall(std::string name) {
    writer_.emplace(options_.tools.get(), name);
    state_ = State::kCall;
    call_is_fresh_ = true;
    ++num_calls_;
    Emit(OutputDelta::Kind::kToolCall, std::move(name));
  }

  void BeginValue(const DsmlTag& tag) {
    call_is_fresh_ = false;
    state_ = State::kValue;
    WithArguments([&](std::string* out) { writer_->BeginParameter(tag.name, tag.is_string, out); });
  }

  void EndValue() {
    state_ = State::kCall;
    WithArguments([&](std::string* out) { writer_->EndParameter(out); });
  }

  void EndCall(State next) {
    WithArguments([&](std::string* out) {
      if (state_ == State::kObject) {
        const size_t end = object_.find_last_not_of(kWhiteSpace) + 1;
        writer_->FinishWithObject(std::string_view(object_).substr(0, end), out);
      } else {
        writer_->Finish(out);
      }
    });
    state_ = next;
  }

  void FinishCall() {
    flaws_.unfinished_call |= state_ == State::kValue || state_ == State::kObject;
    flaws_.lost_text |= state_ == State::kTools && num_calls_ == calls_before_block_;
    if (state_ == State::kValue) EndValue();
    if (state_ == State::kCall || state_ == State::kObject) EndCall(State::kAfter);
  }

  // --- the end ---

  // What is still held back: text outside of calls, nothing inside of them.
  void FinishRest() {
    while (in_tag_ || state_ == State::kHeldCall) {
      if (!std::exchange(in_tag_, false)) {
        FinishHeldCall();
      } else if (state_ == State::kReasoning || state_ == State::kContent) {
        FinishTagInText();
      } else if (state_ == State::kTools || state_ == State::kAfter) {
        flaws_.lost_text |= matcher_.BeginsTag();
      }
      while (at_ < buffer_.size()) Step();
    }
  }

  // The output ends inside a tag. The header of a call may be a quotation; of other tags no reader
  // should see a part.
  void FinishTagInText() {
    if (!matcher_.BeginsTag() || matcher_.NamesCall()) return NoTag(tag_begin_);
    LeaveOutMarkup();
  }

  // The call was never closed: no call, and a quotation only if nothing of a call followed.
  void FinishHeldCall() {
    no_more_closers_ = true;
    if (!held_call_.looks_like_call) return HeldCallIsText();
    state_ = held_call_.state;
    flaws_.unfinished_call = true;
    content_.MarkupLeftOut();
  }

  // --- output ---

  template <typename Write>
  void WithArguments(const Write& write) {
    std::string text;
    write(&text);
    Emit(OutputDelta::Kind::kArguments, std::move(text));
  }

  void Emit(OutputDelta::Kind kind, std::string text) {
    const bool of_call =
        kind == OutputDelta::Kind::kToolCall || kind == OutputDelta::Kind::kArguments;
    const int call = of_call ? num_calls_ - 1 : 0;
    if (of_call && call > 0 && !options_.parallel_tool_calls) return;
    if (kind != OutputDelta::Kind::kToolCall) {
      if (text.empty()) return;
      if (!deltas_->empty() && deltas_->back().kind == kind && deltas_->back().call_index == call) {
        deltas_->back().text.append(text);
        return;
      }
    }
    deltas_->push_back({kind, call, std::move(text)});
  }

  OutputParserOptions options_;
  Utf8Assembler assembler_;
  MarkerScanner scanner_;
  std::string buffer_;
  size_t at_ = 0;
  bool in_tag_ = false;  // a tag is being read; it began at tag_begin_
  size_t tag_begin_ = 0;
  DsmlTagMatcher matcher_;
  State state_;
  HeldCall held_call_{};
  bool no_more_closers_ = false;
  bool in_quotation_ = false;  // behind the header of a call that was shown as text
  TrimmedTail reasoning_;
  TrimmedTail content_;
  int num_calls_ = 0;
  int calls_before_block_ = 0;
  OutputFlaws flaws_;
  std::optional<ArgumentsWriter> writer_;
  bool call_is_fresh_ = false;  // nothing but white space since the header
  std::string object_;
  std::vector<OutputDelta>* deltas_ = nullptr;
};

OutputParser::OutputParser(OutputParserOptions options)
    : machine_(std::make_unique<Machine>(std::move(options))) {}
OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;

void OutputParser::PushText(std::string_view piece, std::vector<OutputDelta>* deltas) {
  machine_->PushText(piece, deltas);
}

void OutputParser::PushOrdinaryText(std::string_view text, std::vector<OutputDelta>* deltas) {
  machine_->PushMarked(text, deltas);
}

void OutputParser::PushMarker(Marker marker, std::vector<OutputDelta>* deltas) {
  const char mark = MarkOf(marker);
  machine_->PushMarked({&mark, 1}, deltas);
}

void OutputParser::Finish(OutputEnd end, std::vector<OutputDelta>* deltas) {
  machine_->Finish(end, deltas);
}

bool OutputParser::in_reasoning() const { return machine_->in_reasoning(); }

int OutputParser::num_tool_calls() const { return machine_->num_tool_calls(); }

const OutputFlaws& OutputParser::flaws() const { return machine_->flaws(); }

void ParsedOutput::Append(const std::vector<OutputDelta>& deltas) {
  for (const OutputDelta& delta : deltas) {
    switch (delta.kind) {
      case OutputDelta::Kind::kReasoning:
        reasoning += delta.text;
        break;
      case OutputDelta::Kind::kContent:
        content += delta.text;
        break;
      case OutputDelta::Kind::kToolCall:
        tool_calls.push_back({delta.text, ""});
        break;
      case OutputDelta::Kind::kArguments:
        tool_calls[static_cast<size_t>(delta.call_index)].arguments += delta.text;
        break;
    }
  }
}

ParsedOutput ParseOutput(std::string_view text, OutputParserOptions options, OutputEnd end) {
  OutputParser parser(std::move(options));
  std::vector<OutputDelta> deltas;
  parser.PushText(text, &deltas);
  parser.Finish(end, &deltas);
  ParsedOutput output;
  output.Append(deltas);
  return output;
}

}  // namespace fulgur::text
