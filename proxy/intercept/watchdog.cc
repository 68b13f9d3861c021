// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/watchdog.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace longhaul::intercept {

bool StandstillClock::look(TimePoint now, const Loop& loop) {
  // If the watchdog wakes late, it was delayed as well: only the time in which it ran counts.
  const Duration awake = std::min(now - looked_, 2 * tick_);
  looked_ = now;
  const Duration ran = loop.on_cpu - std::exchange(on_cpu_, loop.on_cpu);
  if (loop.beats != beats_) {
    beats_ = loop.beats;
    still_ = Duration{0};
    return false;
  }
  still_ += loop.is_runnable ? std::min(awake, ran) : awake;
  return still_ >= limit_;
}

namespace {

// The kernel's state of the thread that created this object.
class ThreadState {
 public:
  ThreadState()
      : stat_(::open(("/proc/self/task/" + std::to_string(::gettid()) + "/stat").c_str(),
                     O_RDONLY | O_CLOEXEC)) {
    if (::pthread_getcpuclockid(::pthread_self(), &clock_) != 0) has_clock_ = false;
  }
  ~ThreadState() {
    if (stat_ >= 0) ::close(stat_);
  }
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;

  // Returns false if /proc or the clock cannot be read: a thread that waits for a CPU then counts as blocked.
  bool is_runnable() const {
    std::array<char, 128> text{};  // the name, at most 16 bytes, in brackets; then the state (proc(5))
    const ssize_t size = has_clock_ && stat_ >= 0 ? ::pread(stat_, text.data(), text.size(), 0) : 0;
    const std::string_view read(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    const std::size_t bracket = read.rfind(')');
    return bracket != std::string_view::npos && read.substr(bracket).starts_with(") R");
  }
  std::chrono::nanoseconds on_cpu() const {
    timespec time{};
    if (!has_clock_ || ::clock_gettime(clock_, &time) != 0) return {};
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

 private:
  int stat_;
  clockid_t clock_{};
  bool has_clock_ = true;
};

}  // namespace

struct Watchdog::Shared {
  Shared(boost::asio::io_context& loop, std::function<void()> standstill)
      : io(loop), on_standstill(std::move(standstill)) {}

  boost::asio::io_context& io;
  const ThreadState loop_thread;
  const std::function<void()> on_standstill;
  std::atomic<std::uint64_t> beats{0};
  std::atomic<bool> asked{false};  // a heartbeat is queued in the loop
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
    const ThreadState& loop = self->loop_thread;
    if (clock.look(
            std::chrono::steady_clock::now(),
            {.beats = self->beats.load(), .on_cpu = loop.on_cpu(), .is_runnable = loop.is_runnable()})) {
      lock.unlock();
      self->on_standstill();
      return;
    }
    // Only one heartbeat at a time, so that a blocked loop does not accumulate them.
    if (!self->asked.exchange(true)) {
      boost::asio::post(self->io, [self] {
        ++self->beats;
        self->asked = false;
      });
    }
  }
}

namespace {

// Must not wait for a lock that the loop may hold: no logger, no destructors, no atexit.
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
  // Signals are handled by the loop's thread.
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
