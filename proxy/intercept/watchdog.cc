// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

namespace longhaul::intercept {

bool StandstillClock::look(TimePoint now, std::uint64_t beats) {
  // A watchdog that wakes late was delayed as well: only the time in which it ran counts.
  const Duration awake = std::min(now - looked_, 2 * tick_);
  looked_ = now;
  if (beats != beats_) {
    beats_ = beats;
    still_ = Duration{0};
    return false;
  }
  still_ += awake;
  return still_ >= limit_;
}

struct Watchdog::Shared {
  Shared(boost::asio::io_context& loop, std::function<void()> standstill)
      : io(loop), on_standstill(std::move(standstill)) {}

  boost::asio::io_context& io;
  const std::function<void()> on_standstill;
  std::atomic<std::uint64_t> beats{0};
  std::atomic<bool> asked{false};  // a heartbeat is on its way through the loop
  std::mutex mutex;
  std::condition_variable stopping;
  bool stopped = false;
  std::thread thread;

  static void watch(const std::shared_ptr<Shared>& self);
};

void Watchdog::Shared::watch(const std::shared_ptr<Shared>& self) {
  std::unique_lock lock(self->mutex);
  StandstillClock clock(kTick, kLimit, std::chrono::steady_clock::now());
  while (!self->stopping.wait_for(lock, kTick, [&] { return self->stopped; })) {
    if (clock.look(std::chrono::steady_clock::now(), self->beats.load())) {
      lock.unlock();
      self->on_standstill();
      return;
    }
    // One heartbeat at a time, or a blocked loop would accumulate them.
    if (!self->asked.exchange(true)) {
      boost::asio::post(self->io, [self] {
        ++self->beats;
        self->asked = false;
      });
    }
  }
}

namespace {

// Nothing that may wait for a lock of the loop: no logger, no destructors, no atexit.
void end_process() {
  constexpr std::string_view kWhy =
      "longhaul: the event loop was blocked for a second; exiting, so that traffic flows without this "
      "daemon\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kWhy.data(), kWhy.size());
  ::_exit(70);  // EX_SOFTWARE
}

}  // namespace

Watchdog::Watchdog(boost::asio::io_context& io, std::function<void()> on_standstill)
    : shared_(std::make_shared<Shared>(io, on_standstill ? std::move(on_standstill) : end_process)) {
  // Signals are for the loop's thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  shared_->thread = std::thread([shared = shared_] { Shared::watch(shared); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
  }
  shared_->stopping.notify_one();
  shared_->thread.join();
}

}  // namespace longhaul::intercept
