// SPDX-License-Identifier: Apache-2.0
// What the two ends of a sweep tell each other over the control connection, after the greeting. Leaves
// framing and the reading of members to tools/measuring, the connection to channel.h.
#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "tools/measuring/pass.h"
#include "tools/measuring/trouble.h"
#include "tools/ttcp/row.h"

namespace longhaul::ttcp {

using measuring::fit_to_print;
using measuring::Trouble;

inline constexpr int kVersion = 2;  // of what follows the greeting
inline constexpr std::size_t kLongestMessage = 16 * 1024;

// The sender announces each test, and the receiver answers where it listens.
struct Announcement {
  std::uint32_t test = 0;
  bool is_udp = false;
  std::uint32_t payload_bytes = 0;
  std::uint32_t socket_buffer = 0;  // 0: the system's
  std::uint32_t silence_ms = 2000;
  measuring::Pass pass{};  // TCP: what the data connection begins with. Datagrams name their test
};
boost::json::object to_message(const Announcement& announcement);
Announcement to_announcement(const boost::json::object& message);  // throws Trouble

// What the receiver found.
struct Receipt {
  std::uint64_t packets = 0;
  std::uint64_t payload_bytes = 0;
  double seconds = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t out_of_order = 0;
  std::uint64_t socket_drops = 0;
  Fragments fragments;
  std::string ended_by;
};
boost::json::object to_message(const Receipt& receipt);
Receipt to_receipt(const boost::json::object& message);  // throws Trouble

std::string say_of(const boost::json::object& message);  // its kind; "" if it has none

}  // namespace longhaul::ttcp
