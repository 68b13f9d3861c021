// SPDX-License-Identifier: Apache-2.0
#include "tools/ttcp/messages.h"

#include <catch2/catch.hpp>

using namespace longhaul::ttcp;

TEST_CASE("announcements and receipts are decoded as encoded, invalid ones are refused") {
  const Announcement announcement{
      .test = 4'000'000'000, .is_udp = true, .payload_bytes = 44, .socket_buffer = 1, .silence_ms = 3};
  const auto read = to_announcement(to_message(announcement));
  CHECK(read.test == announcement.test);
  CHECK(read.pass.is(announcement.pass.bytes()));
  CHECK(read.is_udp);
  CHECK(read.payload_bytes == 44);
  for (const auto& [name, value] : {std::pair<const char*, boost::json::value>{"payload_bytes", 15},
                                    {"payload_bytes", 65'508},
                                    {"payload_bytes", -1},
                                    {"payload_bytes", 1.5},
                                    {"test", "1"},
                                    {"protocol", "sctp"},
                                    {"silence_ms", 3'600'000}}) {
    auto wrong = to_message(announcement);
    wrong[name] = value;
    CHECK_THROWS_AS(to_announcement(wrong), Trouble);
  }
  Receipt receipt;
  receipt.packets = 5;
  receipt.seconds = 0.25;
  receipt.ended_by = "silence";
  receipt.fragments.received = 9;
  const auto back = to_receipt(to_message(receipt));
  CHECK(back.packets == 5);
  CHECK(back.seconds == 0.25);
  CHECK(back.fragments.received == 9);
  auto wrong = to_message(receipt);
  wrong["seconds"] = -1;
  CHECK_THROWS_AS(to_receipt(wrong), Trouble);
  wrong = to_message(receipt);
  wrong["ended_by"] = "\x1b[2J";
  CHECK_THROWS_AS(to_receipt(wrong), Trouble);
}

TEST_CASE("a sentence from the other side cannot control the terminal") {
  CHECK(fit_to_print("a\x1b[31mb") == "a?[31mb");
  CHECK(fit_to_print(std::string(1000, 'x')).size() == 400);
}
