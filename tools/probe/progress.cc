// SPDX-License-Identifier: Apache-2.0
// Bounded to a few lines a second on a terminal, to one in half a minute in a log.
#include "tools/probe/progress.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>

namespace longhaul::probe {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kTerminalPause = 200ms;
constexpr std::chrono::milliseconds kLogPause = 30s;

}  // namespace

ProgressLine::ProgressLine()
    : terminal_(::isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + (terminal_ ? kTerminalPause : kLogPause)) {}

void ProgressLine::show(const Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? kTerminalPause : kLogPause);
  std::fprintf(stderr, "%slonghaul-probe: %s", terminal_ ? "\r\033[K" : "", progress.step);
  if (progress.all > 0) std::fprintf(stderr, " %u of %u", progress.done, progress.all);
  if (progress.seconds_left >= 1) std::fprintf(stderr, ", about %.0f s left", progress.seconds_left);
  if (!terminal_) std::fputc('\n', stderr);
  shown_ = terminal_;
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace longhaul::probe
