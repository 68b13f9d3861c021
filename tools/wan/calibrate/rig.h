// SPDX-License-Identifier: Apache-2.0
// Two hosts and what lies between them: the emulator, or a plain switch to compare it with. Leaves measuring
// to traffic.h and calibrate.h.
#pragma once
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/wan/calibrate/namespace.h"

namespace longhaul::wan {

class Rig {
 public:
  Rig();

  const Namespace& left() const { return left_; }
  const Namespace& middle() const { return middle_; }
  const Namespace& right() const { return right_; }
  static constexpr const char* kLeftAddress = "10.98.0.1";
  static constexpr const char* kRightAddress = "10.98.0.2";
  static constexpr const char* kLeftAddress6 = "fd98::1";
  static constexpr const char* kRightAddress6 = "fd98::2";
  static constexpr const char* kLeftDevice = "left0";  // in their hosts
  static constexpr const char* kRightDevice = "right0";
  static constexpr const char* kEndA = "end-a";  // in the middle, towards the left
  static constexpr const char* kEndB = "end-b";

  // Both hosts' cards send at this rate at most, as a 10 or 100 Mbit/s Ethernet would; empty: no limit.
  void limit_cards(const std::string& rate) const;

 private:
  Namespace left_;
  Namespace middle_;
  Namespace right_;
};

// The program that runs now, as `longhaul-wan run` between the ends of a rig.
class RunningLine {
 public:
  RunningLine(const Rig& rig, const std::string& program, const std::vector<std::string>& settings);
  // Ends it; its final counters.
  boost::json::value finish();
  Program& process() { return process_; }

 private:
  Program process_;
};

// A kernel bridge between the ends of a rig, for as long as it lives.
class Switch {
 public:
  explicit Switch(const Rig& rig);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

 private:
  const Rig& rig_;
};

}  // namespace longhaul::wan
