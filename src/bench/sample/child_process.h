// A program that runs beside us on a pseudo terminal, read line by line.
//
// A terminal, since tools such as npu-smi hold back their output in a pipe. It is the child's
// controlling terminal: if we die, the child gets a hang-up and does not stay behind.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fulgur::bench {

class ChildProcess {
 public:
  // Starts argv[0], which is looked up in PATH. NOT_FOUND if there is no such program.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv);
  ~ChildProcess();  // ends the child

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next line without its end. OUT_OF_RANGE when the child has ended, DEADLINE_EXCEEDED when
  // none came in that time. One thread at a time.
  absl::StatusOr<std::string> ReadLine(absl::Duration limit);

  // Makes ReadLine return OUT_OF_RANGE soon. Callable from any thread.
  void Terminate();

 private:
  ChildProcess(pid_t pid, int terminal) : pid_(pid), terminal_(terminal) {}

  bool TakeLine(std::string& line);

  const pid_t pid_;
  const int terminal_;
  std::string buffer_;
  bool ended_ = false;
};

// All that a program prints until it ends; DEADLINE_EXCEEDED if it takes longer.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& argv, absl::Duration limit);

}  // namespace fulgur::bench
