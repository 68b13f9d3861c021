// SPDX-License-Identifier: Apache-2.0
// A file descriptor with one owner, and the one way system calls that must not fail are reported.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace longhaul::wan {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }  // to another owner
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_ = -1;
};

// For set-up only, where a failure ends the program with a sentence.
inline int must(int result, const std::string& what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace longhaul::wan
