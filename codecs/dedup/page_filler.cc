// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/page_filler.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace longhaul::dedup {
namespace {

constexpr std::size_t kMostWaiting = 256;
// Filled in one call, which cancel() waits for: the kernel's huge page.
constexpr std::size_t kAtOnce = 2 << 20;
constexpr int kNiceness = 10;

}  // namespace

PageFiller& PageFiller::instance() {
  static PageFiller filler;
  return filler;
}

PageFiller::~PageFiller() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void PageFiller::fill(std::byte* begin, std::size_t bytes, When when) {
  std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMostWaiting || bytes == 0) return;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      return;  // Without a thread, pages are allocated on first use.
    }
  }
  if (when == When::soon) {
    waiting_.push_front({begin, bytes});
  } else {
    waiting_.push_back({begin, bytes});
  }
  changed_.notify_all();
}

void PageFiller::cancel(const std::byte* begin, std::size_t bytes) {
  const auto within = [&](const Piece& piece) {
    return piece.begin < begin + bytes && begin < piece.begin + piece.bytes;
  };
  std::unique_lock lock(mutex_);
  std::erase_if(waiting_, within);
  changed_.wait(lock, [&] { return !within(present_); });
}

void PageFiller::run() {
  (void)::pthread_setname_np(::pthread_self(), "page-filler");
  // On Linux this applies to this thread alone: threads that move bytes have priority, and allocate what they
  // need.
  const auto self = static_cast<id_t>(::gettid());
  (void)::setpriority(PRIO_PROCESS, self, std::max(::getpriority(PRIO_PROCESS, self), kNiceness));
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    Piece& next = waiting_.front();
    present_ = {next.begin, std::min(next.bytes, kAtOnce)};
    next.begin += present_.bytes;
    next.bytes -= present_.bytes;
    if (next.bytes == 0) waiting_.pop_front();
    lock.unlock();
    (void)::madvise(present_.begin, present_.bytes, MADV_POPULATE_WRITE);
    lock.lock();
    present_ = {};
    changed_.notify_all();
  }
}

}  // namespace longhaul::dedup
