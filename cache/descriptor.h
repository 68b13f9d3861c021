// SPDX-License-Identifier: Apache-2.0
// Owns a file descriptor, and converts errno to an error code.
#pragma once
#include <unistd.h>

#include <cerrno>

#include "codecs/result.h"

namespace longhaul::cache {

inline boost::system::error_code last_error() { return {errno, boost::system::system_category()}; }

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace longhaul::cache
