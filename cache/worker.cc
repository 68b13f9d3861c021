// SPDX-License-Identifier: Apache-2.0
#include "cache/worker.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace longhaul::cache {

Worker::Worker(const char* name, int niceness) {
  // Signals are handled by another thread; threads that RocksDB starts from here inherit this mask.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, niceness] { run(niceness); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), name);
}

Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void Worker::post(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  posted_.notify_one();
}

bool Worker::busy() const {
  std::lock_guard lock(mutex_);
  return working_ || !jobs_.empty();
}

void Worker::run(int niceness) {
  // On Linux this applies to this thread alone, and to threads that it starts.
  const auto self = static_cast<id_t>(gettid());
  if (niceness > 0)
    (void)setpriority(PRIO_PROCESS, self, std::max(getpriority(PRIO_PROCESS, self), niceness));
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    working_ = true;
    lock.unlock();
    job();
    job = nullptr;  // the job is destroyed before the thread counts as idle
    lock.lock();
    working_ = false;
  }
}

}  // namespace longhaul::cache
