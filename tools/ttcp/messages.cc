// SPDX-License-Identifier: Apache-2.0
// See messages.h. Each number is checked against its bound here, so that later code need not.
#include "tools/ttcp/messages.h"

#include <cmath>

#include "tools/measuring/messages.h"

namespace longhaul::ttcp {

namespace json = boost::json;
using measuring::number;
using measuring::text;

std::string say_of(const json::object& message) {
  const auto* say = message.if_contains("say");
  return say != nullptr && say->is_string() ? std::string(say->get_string()) : std::string();
}

json::object to_message(const Announcement& announcement) {
  return {{"say", "test"},
          {"test", announcement.test},
          {"protocol", announcement.is_udp ? "udp" : "tcp"},
          {"payload_bytes", announcement.payload_bytes},
          {"socket_buffer", announcement.socket_buffer},
          {"silence_ms", announcement.silence_ms},
          {"pass", announcement.pass.text()}};
}

Announcement to_announcement(const json::object& message) {
  const std::string protocol = text(message, "protocol", 16);
  if (protocol != "udp" && protocol != "tcp")
    throw Trouble("the other side announced a test that is neither UDP nor TCP");
  const auto bounded = [&](const char* name, std::int64_t least, std::int64_t most) {
    return static_cast<std::uint32_t>(number(message, name, least, most));
  };
  Announcement announcement;
  announcement.is_udp = protocol == "udp";
  announcement.test = bounded("test", 0, UINT32_MAX);
  announcement.payload_bytes = bounded("payload_bytes", kLeastPacketBytes, kMostDatagramBytes);
  announcement.socket_buffer = bounded("socket_buffer", 0, kMostSocketBuffer);
  announcement.silence_ms = bounded("silence_ms", 0, 60'000);
  announcement.pass = measuring::Pass::of_text(text(message, "pass", 2 * measuring::kPassBytes));
  return announcement;
}

json::object to_message(const Receipt& receipt) {
  return {{"say", "received"},
          {"packets", receipt.packets},
          {"payload_bytes", receipt.payload_bytes},
          {"seconds", receipt.seconds},
          {"duplicates", receipt.duplicates},
          {"out_of_order", receipt.out_of_order},
          {"socket_drops", receipt.socket_drops},
          {"fragments_created", receipt.fragments.created},
          {"fragments_received", receipt.fragments.received},
          {"fragments_failed", receipt.fragments.failed},
          {"ended_by", receipt.ended_by}};
}

Receipt to_receipt(const json::object& message) {
  const auto count = [&](const char* name) {
    constexpr std::int64_t kMost = std::int64_t{1} << 53;  // what a spreadsheet counts exactly
    return static_cast<std::uint64_t>(number(message, name, 0, kMost));
  };
  Receipt receipt;
  receipt.packets = count("packets");
  receipt.payload_bytes = count("payload_bytes");
  receipt.duplicates = count("duplicates");
  receipt.out_of_order = count("out_of_order");
  receipt.socket_drops = count("socket_drops");
  receipt.fragments = {count("fragments_created"), count("fragments_received"), count("fragments_failed")};
  boost::system::error_code error;
  const auto* seconds = message.if_contains("seconds");
  if (seconds != nullptr) receipt.seconds = seconds->to_number<double>(error);
  if (seconds == nullptr || error || !std::isfinite(receipt.seconds) || receipt.seconds < 0)
    throw Trouble("the other side sent a message without a valid 'seconds'");
  receipt.ended_by = text(message, "ended_by", 32);
  for (const std::string_view known : {"all received", "mark", "silence", "close"})
    if (receipt.ended_by == known) return receipt;
  throw Trouble("the other side ended a test in an unknown way");
}

}  // namespace longhaul::ttcp
