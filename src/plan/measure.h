// Measures what this machine can do at this moment: memory, kernels, and workers that meet.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "base/machine.h"
#include "base/team.h"
#include "kernels/op_table.h"
#include "plan/machine_figures.h"

namespace fulgur::plan {

// Memory that is read to measure how fast memory is: far larger than caches, on huge pages.
class ReadProbe {
 public:
  // `bytes` for all workers of the team together; they touch their own shares first.
  static absl::StatusOr<ReadProbe> Create(base::WorkerTeam& team, int64_t bytes);
  ReadProbe(ReadProbe&&) noexcept;
  ReadProbe& operator=(ReadProbe&&) noexcept;
  ~ReadProbe();

  // Bytes per second of the first `workers` workers reading their shares once, at the same time.
  double ReadRate(base::WorkerTeam& team, int workers) const;

 private:
  struct Memory;
  explicit ReadProbe(std::unique_ptr<Memory> memory);

  std::unique_ptr<Memory> memory_;
};

// About two seconds; all workers of the team run. Errors: no memory for the probe.
absl::StatusOr<MachineFigures> MeasureMachine(const base::Machine& machine,
                                              const kernels::OpTable& ops, base::WorkerTeam& team);

}  // namespace fulgur::plan
