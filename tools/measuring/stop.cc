// SPDX-License-Identifier: Apache-2.0
// An eventfd beside a flag: one for waiting threads, the other for working ones.
#include "tools/measuring/stop.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <vector>

namespace longhaul::measuring {
namespace {

std::atomic<Stop*> signalled = nullptr;  // a handler has no other way to its object

void on_signal(int) {
  const int kept = errno;
  if (Stop* stop = signalled.load()) stop->request();
  errno = kept;
}

timespec until(TimePoint deadline) {
  const auto left = std::max<std::chrono::nanoseconds>(std::chrono::nanoseconds{0},
                                                       deadline - std::chrono::steady_clock::now());
  return {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
}

}  // namespace

Stop::Stop() : event_(wan::must(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {}

Stop::~Stop() {
  Stop* self = this;
  if (!signalled.compare_exchange_strong(self, nullptr)) return;
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

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
    const timespec left = deadline ? until(*deadline) : timespec{};
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

void pause(Duration time, const Stop& stop) {
  const TimePoint deadline = std::chrono::steady_clock::now() + time;
  pollfd requested{stop.descriptor(), POLLIN, 0};
  while (!stop.is_requested() && std::chrono::steady_clock::now() < deadline) {
    const timespec left = until(deadline);
    ::ppoll(&requested, 1, &left, nullptr);
  }
}

void sleep_until(TimePoint deadline, const Stop& stop) {
  while (std::chrono::steady_clock::now() < deadline) wait({}, deadline, stop);
}

}  // namespace longhaul::measuring
