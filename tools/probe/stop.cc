// SPDX-License-Identifier: Apache-2.0
// Blocked signals, read from a descriptor beside the others.
#include "tools/probe/stop.h"

#include <poll.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

namespace longhaul::probe {
namespace {

timespec to_timespec(std::chrono::nanoseconds time) {
  const auto count = std::max<std::chrono::nanoseconds::rep>(0, time.count());
  return {count / 1'000'000'000, count % 1'000'000'000};
}

}  // namespace

Stop::Stop() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, &before_);
  signals_ = Descriptor{::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (signals_.get() < 0) throw std::runtime_error("cannot wait for signals");
}

Stop::~Stop() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

bool Stop::asked() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) asked_ = true;
  return asked_;
}

bool Stop::readable(int descriptor, std::chrono::nanoseconds most) {
  pollfd waits[2] = {{signals_.get(), POLLIN, 0}, {descriptor, POLLIN, 0}};
  const timespec time = to_timespec(most);
  if (::ppoll(waits, 2, &time, nullptr) < 0 && errno != EINTR) throw std::runtime_error("cannot wait");
  if (waits[0].revents != 0) asked_ = true;
  return !asked_ && waits[1].revents != 0;
}

void Stop::pause(std::chrono::nanoseconds time) { readable(-1, time); }

}  // namespace longhaul::probe
