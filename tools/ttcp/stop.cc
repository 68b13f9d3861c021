// SPDX-License-Identifier: Apache-2.0
// See stop.h.
#include "tools/ttcp/stop.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <vector>

namespace longhaul::ttcp {
namespace {

std::atomic<Stop*> signalled = nullptr;  // a handler has no other way to its object

void on_signal(int) {
  const int kept = errno;
  if (Stop* stop = signalled.load()) stop->request();
  errno = kept;
}

}  // namespace

Stop::Stop() : event_(wan::must(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {}

void Stop::request() noexcept {
  requested_.store(true);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      ::write(event_.get(), &one, sizeof one);  // full: it is readable already
}

void stop_on_signals(Stop& stop) {
  signalled = &stop;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  wan::must(::sigaction(SIGINT, &action, nullptr), "sigaction");
  wan::must(::sigaction(SIGTERM, &action, nullptr), "sigaction");
}

bool wait(std::span<pollfd> descriptors, std::optional<TimePoint> deadline, const Stop& stop) {
  std::vector<pollfd> all(descriptors.begin(), descriptors.end());
  all.push_back({stop.descriptor(), POLLIN, 0});
  for (;;) {
    stop.check();
    timespec left{};
    if (deadline) {
      const auto nanoseconds = std::max<std::chrono::nanoseconds>(
          std::chrono::nanoseconds{0}, *deadline - std::chrono::steady_clock::now());
      left.tv_sec = nanoseconds.count() / 1'000'000'000;
      left.tv_nsec = nanoseconds.count() % 1'000'000'000;
    }
    const int ready = ::ppoll(all.data(), all.size(), deadline ? &left : nullptr, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    wan::must(ready, "poll");
    stop.check();
    for (std::size_t i = 0; i < descriptors.size(); ++i) descriptors[i].revents = all[i].revents;
    return ready > 0;
  }
}

bool wait_readable(int descriptor, std::optional<TimePoint> deadline, const Stop& stop) {
  pollfd one{descriptor, POLLIN, 0};
  return wait({&one, 1}, deadline, stop);
}

bool wait_writable(int descriptor, std::optional<TimePoint> deadline, const Stop& stop) {
  pollfd one{descriptor, POLLOUT, 0};
  return wait({&one, 1}, deadline, stop);
}

void sleep_until(TimePoint deadline, const Stop& stop) {
  while (std::chrono::steady_clock::now() < deadline) wait({}, deadline, stop);
}

}  // namespace longhaul::ttcp
