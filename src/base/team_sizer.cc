#include "base/team_sizer.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "fmt/format.h"

namespace fulgur::base {
namespace {

constexpr std::chrono::seconds kLookInterval{1};
constexpr std::chrono::seconds kMaxPatience{160};
constexpr int64_t kLeastNs = 50'000'000;  // of a look; below, the team was idle

// A worker that waits for more than a fifth of its time makes all others wait as long.
bool IsCrowded(const CoreTimes& times) { return times.waited_ns * 4 > times.ran_ns; }

}  // namespace

CoreTimes ReadCoreTimes(int thread_id) {
  std::ifstream file(fmt::format("/proc/self/task/{}/schedstat", thread_id));
  CoreTimes times;
  if (!(file >> times.ran_ns >> times.waited_ns)) return {};
  return times;
}

int TeamSizePolicy::Next(int active, std::span<const CoreTimes> times, Clock::time_point now) {
  int64_t total = 0;
  for (const CoreTimes& worker : times) total += worker.ran_ns + worker.waited_ns;
  if (total < kLeastNs) return active;
  const auto crowded = static_cast<int>(std::count_if(times.begin(), times.end(), IsCrowded));
  if (crowded > 0 && active > 1) {
    if (retrying_) patience_ = std::min(patience_ * 2, kMaxPatience);
    retrying_ = false;
    retry_at_ = now + patience_;
    return std::max(1, active - crowded);
  }
  if (active == size_) {
    if (retrying_ && now >= retry_at_) {  // the whole team has done well for long enough
      retrying_ = false;
      patience_ = std::chrono::seconds(10);
    }
    return active;
  }
  if (now < retry_at_) return active;
  retrying_ = true;
  retry_at_ = now + patience_;
  return size_;
}

TeamSizer::TeamSizer(WorkerTeam& team)
    : team_(team), policy_(team.size()), last_(static_cast<size_t>(team.size())) {}

std::string TeamSizer::AfterRegion() {
  const auto now = TeamSizePolicy::Clock::now();
  if (team_.size() == 1 || now < next_look_) return "";
  next_look_ = now + kLookInterval;
  const std::vector<CoreTimes> times = TimesSinceLastLook();
  // What threads did before their first region, such as starting up, says nothing of regions.
  if (!std::exchange(has_looked_, true)) return "";
  const int active = team_.active();
  const int next = policy_.Next(active, times, now);
  if (next == active) return "";
  team_.SetActive(next);
  if (next > active) return fmt::format("trying {} worker threads again", next);
  return fmt::format(
      "other programs use this machine's cores: {} of {} worker threads go on, so that steps do "
      "not wait for the others (--threads sets how many there are)",
      next, team_.size());
}

std::vector<CoreTimes> TeamSizer::TimesSinceLastLook() {
  std::vector<CoreTimes> times;
  const std::vector<int> ids = team_.ThreadIds();
  for (size_t rank = 0; rank < ids.size(); ++rank) {
    const CoreTimes total = ReadCoreTimes(ids[rank]);
    if (rank < static_cast<size_t>(team_.active())) {
      times.push_back({total.ran_ns - last_[rank].ran_ns, total.waited_ns - last_[rank].waited_ns});
    }
    last_[rank] = total;
  }
  return times;
}

}  // namespace fulgur::base
