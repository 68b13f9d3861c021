// SPDX-License-Identifier: Apache-2.0
// Allocates pages before they are needed: in a virtual machine the first touch of a huge page can take 5 ms
// or more, which would delay a writer of the history. One thread for all, started by the first request.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>

namespace longhaul::dedup {

class PageFiller {
 public:
  static PageFiller& instance();

  // For whole pages of anonymous memory; returns at once. A hint: requests beyond the limit, and those that
  // the kernel cannot serve (before Linux 5.14), are dropped.
  enum class When { soon, sometime };  // urgent requests go first
  void fill(std::byte* begin, std::size_t bytes, When when);
  // When it returns, no page of the range is filled any more. To be called before the memory is released.
  void cancel(const std::byte* begin, std::size_t bytes);

 private:
  struct Piece {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };

  PageFiller() = default;
  ~PageFiller();
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> waiting_;
  Piece present_;  // being filled now
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace longhaul::dedup
