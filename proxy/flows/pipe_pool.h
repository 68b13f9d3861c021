// SPDX-License-Identifier: Apache-2.0
// Kernel pipes for splice(2), lent while bytes are on their way and taken back empty, so that idle flows hold
// none. What moves through them is the relay's business.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace longhaul::flows {

// Both ends of one pipe, non-blocking. Closed with the object.
class Pipe {
 public:
  Pipe() = default;
  Pipe(int read_end, int write_end, std::size_t capacity_bytes)
      : read_end_(read_end), write_end_(write_end), capacity_bytes_(capacity_bytes) {}
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
  }

  int read_end_ = -1;
  int write_end_ = -1;
  std::size_t capacity_bytes_ = 0;
};

class PipePool {
 public:
  static constexpr std::size_t kPipeBytes = 1 << 20;  // /proc/sys/fs/pipe-max-size, what every user may have
  static constexpr std::size_t kKept = 16;            // empty pipes kept for the next flows

  // A false pipe when the process may have no more descriptors or pipe memory.
  Pipe lend();
  // Only empty pipes come back; one with bytes in it is destroyed by its holder.
  void take_back(Pipe pipe);
  std::size_t kept() const { return kept_.size(); }

 private:
  std::vector<Pipe> kept_;
};

}  // namespace longhaul::flows
