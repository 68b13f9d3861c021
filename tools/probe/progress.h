// SPDX-License-Identifier: Apache-2.0
// One line on standard error that says how far long work is: rewritten on a terminal, a new one now and then
// elsewhere.
#pragma once
#include <chrono>
#include <string>

#include "tools/probe/sweep.h"

namespace longhaul::probe {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  void show(const Progress& progress);
  void clear();  // before anything else is printed

 private:
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

std::string time_text();  // now, in UTC: 2026-11-21T16:00:00Z

}  // namespace longhaul::probe
