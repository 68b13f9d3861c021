// SPDX-License-Identifier: Apache-2.0
// A thread that runs jobs in order, and a queue in which it leaves results for another thread. The caller
// bounds the number of posted jobs.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace longhaul::cache {

class Worker {
 public:
  // `name`: at most 15 characters, for top and gdb. `niceness`, 0 to 19, as in nice(2).
  explicit Worker(const char* name, int niceness = 0);
  ~Worker();  // after the last job that was posted
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(std::function<void()> job);
  bool busy() const;

 private:
  void run(int niceness);

  mutable std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> jobs_;
  bool working_ = false;
  bool ending_ = false;
  std::thread thread_;
};

template <class Event>
class Mailbox {
 public:
  // `wake` is called by the thread that puts something into an empty box.
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void put(Event event) {
    put_when(std::move(event), [] { return true; });
  }
  // Blocks while the box holds `limit` events or more.
  void put_below(std::size_t limit, Event event) {
    put_when(std::move(event), [&] { return events_.size() < limit; });
  }
  // Moves up to `most` events to `out`; true if there are more.
  bool take(std::size_t most, std::vector<Event>& out) {
    std::lock_guard lock(mutex_);
    for (; most > 0 && !events_.empty(); --most) {
      out.push_back(std::move(events_.front()));
      events_.pop_front();
    }
    taken_.notify_all();
    return !events_.empty();
  }
  // Later events are discarded.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    events_.clear();
    taken_.notify_all();
  }

 private:
  template <class Ready>
  void put_when(Event event, Ready&& ready) {
    {
      std::unique_lock lock(mutex_);
      taken_.wait(lock, [&] { return closed_ || ready(); });
      if (closed_) return;
      events_.push_back(std::move(event));
      if (events_.size() > 1) return;
    }
    if (wake_) wake_();
  }

  std::mutex mutex_;
  std::condition_variable taken_;
  std::deque<Event> events_;
  bool closed_ = false;
  std::function<void()> wake_;
};

}  // namespace longhaul::cache
