// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/processor_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <optional>

namespace longhaul::link {
namespace {

// "running waiting slices", the first two in nanoseconds; kept open as long as the thread lives.
class Schedstat {
 public:
  Schedstat() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~Schedstat() {
    if (file_ >= 0) ::close(file_);
  }
  Schedstat(const Schedstat&) = delete;
  Schedstat& operator=(const Schedstat&) = delete;

  std::optional<Duration> read() const {
    char text[96];
    const ssize_t size = file_ < 0 ? -1 : ::pread(file_, text, sizeof text, 0);
    if (size <= 0) return std::nullopt;
    std::uint64_t got = 0, waited = 0;
    const char* end = text + size;
    auto first = std::from_chars(text, end, got);
    if (first.ec != std::errc{} || first.ptr == end) return std::nullopt;
    if (std::from_chars(first.ptr + 1, end, waited).ec != std::errc{}) return std::nullopt;
    return std::chrono::nanoseconds(got + waited);
  }

 private:
  int file_;
};

}  // namespace

Duration processor_wanted() {
  thread_local const Schedstat schedstat;
  if (auto wanted = schedstat.read()) return *wanted;
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace longhaul::link
