#include "text/response_decoder.h"

#include <algorithm>

namespace fulgur::text {

ResponseDecoder::ResponseDecoder(Tokenizer tokenizer, ResponseOptions options)
    : tokenizer_(std::move(tokenizer)),
      skip_special_tokens_(options.skip_special_tokens),
      min_tokens_(options.min_tokens),
      stop_(std::move(options.stop_strings), options.include_stop_string) {
  if (!options.parser.has_value()) return;
  parser_.emplace(*std::move(options.parser));
  for (int i = 0; i < kNumMarkers; ++i) {
    const auto marker = static_cast<Marker>(i);
    if (const auto id = tokenizer_.FindAddedToken(MarkerText(marker))) {
      markers_.emplace_back(*id, marker);
    } else {
      spelt_markers_ = true;
    }
  }
}

void ResponseDecoder::Push(int32_t id, std::vector<OutputDelta>* deltas) {
  if (stopped()) return;
  ++num_tokens_;
  const std::optional<Marker> marker = MarkerOf(id);
  const bool part_of_format =
      marker.has_value() && marker != Marker::kBos && marker != Marker::kEos;
  if (skip_special_tokens_ && tokenizer_.IsSpecial(id) && !part_of_format) return;
  std::string text;
  if (marker.has_value()) {
    assembler_.Finish(&text);
    if (!text.empty()) Feed(std::move(text), std::nullopt, deltas);
    ++tokens_in_assembler_;
    return Feed(std::string(MarkerText(*marker)), marker, deltas);
  }
  ++tokens_in_assembler_;
  assembler_.Push(tokenizer_.TokenBytes(id), &text);
  if (!text.empty()) Feed(std::move(text), std::nullopt, deltas);
}

void ResponseDecoder::Finish(OutputEnd end, std::vector<OutputDelta>* deltas) {
  std::string text;
  assembler_.Finish(&text);
  if (!text.empty() && !stopped()) Feed(std::move(text), std::nullopt, deltas);
  Release(stop_.Finish(), deltas);
  if (parser_.has_value()) parser_->Finish(stopped() ? OutputEnd::kStop : end, deltas);
}

std::optional<Marker> ResponseDecoder::MarkerOf(int32_t id) const {
  const auto entry = std::find_if(markers_.begin(), markers_.end(),
                                  [id](const auto& known) { return known.first == id; });
  if (entry == markers_.end()) return std::nullopt;
  return entry->second;
}

void ResponseDecoder::Feed(std::string text, std::optional<Marker> marker,
                           std::vector<OutputDelta>* deltas) {
  waiting_.push_back({std::move(text), marker, std::exchange(tokens_in_assembler_, 0)});
  Release(stop_.Push(waiting_.back().text, num_tokens_ > min_tokens_), deltas);
}

// Hands on the next `text` of what waits, token by token.
void ResponseDecoder::Release(std::string_view text, std::vector<OutputDelta>* deltas) {
  while (!text.empty()) {
    Piece& piece = waiting_.front();
    const std::string_view part = text.substr(0, piece.text.size() - released_);
    const bool complete = released_ + part.size() == piece.text.size();
    text.remove_prefix(part.size());
    if (released_ == 0) CountReasoning(piece);
    // A marker that a stop string cuts in two is no marker any more.
    if (!piece.marker.has_value()) {
      Emit(part, std::nullopt, deltas);
    } else if (complete) {
      Emit(piece.text, piece.marker, deltas);
    }
    released_ += part.size();
    if (complete) {
      waiting_.pop_front();
      released_ = 0;
    }
  }
  if (stopped() && released_ > 0) {
    const Piece piece = std::move(waiting_.front());
    if (piece.marker.has_value()) Emit(piece.text.substr(0, released_), std::nullopt, deltas);
    released_ = 0;
  }
}

void ResponseDecoder::CountReasoning(const Piece& piece) {
  const bool closes = piece.marker == Marker::kThinkClose || piece.marker == Marker::kEos;
  if (in_reasoning() && !closes) reasoning_tokens_ += piece.tokens;
}

void ResponseDecoder::Emit(std::string_view text, std::optional<Marker> marker,
                           std::vector<OutputDelta>* deltas) {
  if (!parser_.has_value()) {
    deltas->push_back({OutputDelta::Kind::kContent, 0, std::string(text)});
  } else if (spelt_markers_) {
    parser_->PushText(text, deltas);
  } else if (marker.has_value()) {
    parser_->PushMarker(*marker, deltas);
  } else {
    parser_->PushOrdinaryText(text, deltas);
  }
}

}  // namespace fulgur::text
