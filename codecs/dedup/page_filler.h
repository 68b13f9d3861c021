// SPDX-License-Identifier: Apache-2.0
// Allocates pages before they are needed: in a virtual machine the first touch of a huge page can take 5 ms
// and more, which a writer of the history should not wait for. One thread for all, started by the first
// request.
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

  // Whole pages of anonymous memory; returns at once. A hint: what is too much at once is not done, nor what
  // the kernel does not know how to (before Linux 5.14).
  enum class When { soon, sometime };  // what is needed soon goes first
  void fill(std::byte* begin, std::size_t bytes, When when);
  // Nothing within is filled any more when it returns: before the memory goes, or is given back.
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
