#include "bench/load/display.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "bench/load/clock.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr auto kTerminalPeriod = std::chrono::milliseconds(500);
constexpr auto kLogPeriod = std::chrono::seconds(10);
constexpr std::string_view kClearLine = "\r\033[K";

std::string Clock(double seconds) {
  const auto whole = static_cast<int64_t>(std::max(0.0, seconds));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

void Put(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

Display::Display(Style style, std::string cell, const LiveCounts& counts, int64_t duration_ns)
    : style_(style), cell_(std::move(cell)), counts_(counts), duration_ns_(duration_ns) {
  if (style_ != Style::kSilent) thread_ = std::thread([this] { Work(); });
}

Display::~Display() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (style_ == Style::kTerminal) Put(std::string(kClearLine));
}

void Display::Say(const std::string& sentence) {
  if (style_ == Style::kSilent) return;
  const std::lock_guard lock(mutex_);
  Put(fmt::format("{}{}: {}\n", style_ == Style::kTerminal ? kClearLine : "", cell_, sentence));
}

void Display::Work() {
  std::unique_lock lock(mutex_);
  const std::chrono::milliseconds period =
      style_ == Style::kTerminal ? kTerminalPeriod : kLogPeriod;
  while (!changed_.wait_for(lock, period, [this] { return stopping_; })) {
    if (style_ == Style::kTerminal)
      Put(fmt::format("{}{}", kClearLine, Line()));
    else
      Put(Line() + "\n");
  }
}

std::string Display::Line() const {
  const int64_t start = counts_.profiling_start_ns;
  if (start == 0) return fmt::format("{}  warm-up, {} in flight", cell_, counts_.in_flight.load());
  const int64_t planned = counts_.planned;
  const int64_t done = counts_.done;
  const double elapsed = static_cast<double>(MonotonicNs() - start) / 1e9;
  double left = -1.0;
  if (duration_ns_ > 0) {
    left = static_cast<double>(duration_ns_) / 1e9 - elapsed;
  } else if (planned > 0 && done > 0) {
    left = elapsed / static_cast<double>(done) * static_cast<double>(planned - done);
  }
  const double rate = static_cast<double>(counts_.output_tokens.load()) / std::max(elapsed, 1e-3);
  return fmt::format("{}  {}{} requests, {} in flight  {:.1f} tok/s  {} errors  {}{}", cell_, done,
                     planned > 0 ? fmt::format("/{}", planned) : "", counts_.in_flight.load(), rate,
                     counts_.failed.load(), Clock(elapsed),
                     left >= 0 ? fmt::format(", {} left", Clock(left)) : "");
}

}  // namespace fulgur::bench
