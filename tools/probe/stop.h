// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as something to wait for: long work looks here between two steps and ends with what it has.
#pragma once
#include <chrono>
#include <csignal>

#include "tools/wan/descriptor.h"

namespace longhaul::probe {

using wan::Descriptor;

class Stop {
 public:
  Stop();  // from now on SIGINT and SIGTERM are kept for this object
  ~Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  bool asked();
  // Until there is something to read, the time is over, or the end is asked for; true for the first.
  bool readable(int descriptor, std::chrono::nanoseconds most);
  void pause(std::chrono::nanoseconds time);
  int descriptor() const { return signals_.get(); }

 private:
  sigset_t before_{};
  Descriptor signals_;
  bool asked_ = false;
};

}  // namespace longhaul::probe
