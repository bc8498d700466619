#include "cli/load_progress.h"

#include <algorithm>
#include <iostream>

#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace fulgur::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLogInterval = std::chrono::seconds(5);

double Gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

double Share(int64_t done, int64_t total) {
  return total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
}

std::string Amount(int64_t done, int64_t total, double seconds) {
  return fmt::format("{:.0f} %  {:.2f} of {:.2f} GB, {:.2f} GB/s", 100 * Share(done, total),
                     Gigabytes(done), Gigabytes(total), Gigabytes(done) / std::max(seconds, 1e-3));
}

}  // namespace

std::string ProgressBar(int64_t done_bytes, int64_t total_bytes, double seconds) {
  constexpr int kCells = 30;
  const int filled = static_cast<int>(kCells * Share(done_bytes, total_bytes));
  return fmt::format("[{:#<{}}{:.<{}}] {}", "", filled, "", kCells - filled,
                     Amount(done_bytes, total_bytes, seconds));
}

void LoadProgress::Update(int64_t done_bytes, int64_t total_bytes) {
  if (finished_) return;
  const Clock::time_point now = Clock::now();
  finished_ = done_bytes >= total_bytes;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (!terminal_) {
    if (now - std::max(shown_, start_) < kLogInterval) return;
    spdlog::info("loading: {}", Amount(done_bytes, total_bytes, seconds));
  } else {
    if (!finished_ && now - shown_ < kRedraw) return;
    std::cerr << "\r" << ProgressBar(done_bytes, total_bytes, seconds) << "\033[K"
              << (finished_ ? "\n" : "") << std::flush;
  }
  shown_ = now;
}

}  // namespace fulgur::cli
