// One request and its answer: turns what the connection tells into a RequestRecord.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/load/answer_reader.h"
#include "bench/load/http_client.h"
#include "bench/load/sse_messages.h"
#include "bench/stats/record.h"

namespace fulgur::bench {

// A request that ended, with what its answer said.
struct FinishedRequest {
  RequestRecord record;
  std::string text;  // visible; both empty unless texts are kept
  std::string reasoning;
  int64_t comments = 0;   // keep-alive lines of the stream
  bool repeated = false;  // sent again on a new connection
};

class Exchange : public CallObserver {
 public:
  struct Callbacks {
    std::function<void(int64_t time_ns)> on_first_output;  // may be empty
    std::function<void(int64_t tokens)> on_output;         // tokens of one frame, 1 if not known
    std::function<void(FinishedRequest)> on_end;           // last; the exchange may be destroyed
  };

  // `record` carries what the plan knows. The reader must outlive the exchange.
  Exchange(RequestRecord record, bool streaming, AnswerReader& reader, Callbacks callbacks);

  void OnStart(int64_t time_ns, bool repeated) override;
  void OnHeaders(int status, std::string_view reason, std::string_view content_type,
                 int64_t time_ns) override;
  void OnBody(std::string_view piece, int64_t time_ns) override;
  void OnEnd(const CallEnd& end) override;

 private:
  void NoteOutput(size_t frames_before);
  std::optional<RequestError> Judge(const CallEnd& end) const;
  std::optional<RequestError> JudgeAnswer() const;

  RequestRecord record_;
  const bool streaming_;
  AnswerReader& reader_;
  Callbacks callbacks_;
  SseMessages messages_;
  AnswerSoFar answer_;
  int status_ = 0;
  std::string reason_;
  bool is_stream_ = false;  // the answer is a stream of events
  std::string body_;        // of an answer that is not, or of an error
  int64_t last_byte_ns_ = 0;
  bool has_output_ = false;
  bool repeated_ = false;
};

}  // namespace fulgur::bench
