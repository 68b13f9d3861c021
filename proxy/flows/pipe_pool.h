// SPDX-License-Identifier: Apache-2.0
// Kernel pipes for splice(2), lent while bytes are in transit and returned empty, so that idle flows hold
// none. Used by the relay.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace longhaul::flows {

// Both ends of one pipe, non-blocking. The destructor closes it and uncounts it.
class Pipe {
 public:
  Pipe() = default;
  Pipe(int read_end, int write_end, std::size_t capacity_bytes, std::shared_ptr<std::size_t> alive);
  Pipe(Pipe&& other) noexcept { swap(other); }
  Pipe& operator=(Pipe&& other) noexcept {
    Pipe(std::move(other)).swap(*this);
    return *this;
  }
  ~Pipe();

  explicit operator bool() const { return read_end_ >= 0; }
  int read_end() const { return read_end_; }
  int write_end() const { return write_end_; }
  std::size_t capacity_bytes() const { return capacity_bytes_; }

 private:
  void swap(Pipe& other) noexcept {
    std::swap(read_end_, other.read_end_);
    std::swap(write_end_, other.write_end_);
    std::swap(capacity_bytes_, other.capacity_bytes_);
    std::swap(alive_, other.alive_);
  }

  int read_end_ = -1;
  int write_end_ = -1;
  std::size_t capacity_bytes_ = 0;
  std::shared_ptr<std::size_t> alive_;  // the pool's count, which a cancelled flow may outlive
};

class PipePool {
 public:
  // A few flows get large pipes, which are 10 % faster. Together with the small ones of the other flows the
  // relay's 128 stay within the 64 MiB of /proc/sys/fs/pipe-user-pages-soft, the limit per user.
  static constexpr std::size_t kLargeBytes = 1 << 20, kSmallBytes = 256 << 10;
  static constexpr std::size_t kLarge = 32;
  static constexpr std::size_t kKept = 16;  // empty pipes kept for the next flows

  // At most `most` pipes at once; each may hold bytes in kernel memory while a reader is slow.
  explicit PipePool(std::size_t most) : most_(most) {}

  // Returns an empty Pipe if all are lent, or the process has reached its limit of descriptors or pipe
  // memory.
  Pipe lend();
  // Only empty pipes may be returned; a pipe with bytes in it must be destroyed.
  void take_back(Pipe pipe);

 private:
  const std::size_t most_;
  std::shared_ptr<std::size_t> alive_ = std::make_shared<std::size_t>(0);  // lent and kept
  std::vector<Pipe> kept_;
};

}  // namespace longhaul::flows
