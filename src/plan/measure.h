// Measures what this machine can do at this moment: memory, kernels, and workers that meet.
//
// In time of the workers' threads, which stands still while other programs have their cores: so a
// busy machine is measured as it would be with the cores to itself, but for memory and caches.
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

  // Bytes per second of the first `workers` workers reading their shares once, at the same time;
  // the sum of what each reads in its thread's time.
  double ReadRate(base::WorkerTeam& team, int workers) const;

 private:
  struct Memory;
  explicit ReadProbe(std::unique_ptr<Memory> memory);

  std::unique_ptr<Memory> memory_;
};

// Seconds that the calling thread has run.
double ThreadSeconds();

// About two seconds; all workers of the team run. Errors: no memory for the probe.
absl::StatusOr<MachineFigures> MeasureMachine(const base::Machine& machine,
                                              const kernels::OpTable& ops, base::WorkerTeam& team);

}  // namespace fulgur::plan
