// SPDX-License-Identifier: Apache-2.0
// What console and agents say after the greeting, as both need to know it.
//
//   console                                          agent
//   {"do": "serve", "workload", "address", "port"}   {"address", "port", "pass"}: where it waits, for whom
//   {"do": "drive", "workload", "address", "port", "pass"}   {}: ready
//   {"do": "go"}                                      only to the one that drives
//                                                    {"times": [ns, …], …, "ended": false} four times a
//                                                    second
//   {"do": "stop"}                                   the last of them, "ended": true
// Closing the connection stops the operation.
#pragma once
#include <boost/json/object.hpp>
#include <chrono>

#include "tools/measuring/greeting.h"
#include "tools/txn/job.h"

namespace longhaul::txn {

inline constexpr std::uint16_t kControlPort = 7610;
inline constexpr std::chrono::milliseconds kGreetingPatience{10'000};
inline constexpr std::chrono::milliseconds kReportEvery{250};
inline constexpr std::chrono::milliseconds kSilence{20'000};  // many reports
inline constexpr std::size_t kMostTimesInReport = 20'000;     // of at most 14 bytes each

inline measuring::Identity identity(std::string token) {
  measuring::Identity made;
  made.program = "longhaul-txn";
  made.version = 2;
  made.token = std::move(token);
  return made;
}

boost::json::object report_of(const Measured& measured, bool ended);
struct Report {
  Measured measured;
  bool ended = false;
};
Report parse_report(const boost::json::object& message);  // throws Trouble

}  // namespace longhaul::txn
