// SPDX-License-Identifier: Apache-2.0
#include "tools/ttcp/tally.h"

#include <catch2/catch.hpp>

#include "tools/ttcp/plan.h"

using namespace longhaul::ttcp;
using namespace std::chrono_literals;

namespace {
constexpr std::uint32_t kTest = 7;
constexpr std::size_t kBytes = 32;
constexpr TimePoint kStart{1h};

std::vector<std::byte> datagram(std::uint64_t number, std::size_t bytes = kBytes,
                                std::uint32_t test = kTest) {
  std::vector<std::byte> packet(bytes);
  write_label({test, number}, std::span<std::byte, kLabelBytes>{packet.data(), kLabelBytes});
  return packet;
}

struct Tallied {
  Tally tally{{kTest, kBytes, 2s}};
  void packet(std::uint64_t number, Duration at) { tally.on_datagram(datagram(number), kStart + at); }
  void mark(std::uint64_t which, Duration at) {
    tally.on_datagram(datagram(which, kLabelBytes), kStart + at);
  }
  void sent(std::uint64_t packets, Duration at) { tally.on_sent(packets, kStart + at); }
  Ending ending(Duration at) const { return tally.ending(kStart + at); }
};
}  // namespace

TEST_CASE("a test ends when everything has arrived, without waiting for a mark") {
  Tallied test;
  test.mark(kStartMark, 0ms);
  for (int i = 0; i < 10; ++i) test.packet(i, 10ms * (i + 1));
  CHECK(test.ending(1h) == Ending::none);  // more may follow: the number is unknown
  test.sent(10, 101ms);
  CHECK(test.ending(101ms) == Ending::all_received);
  CHECK(test.tally.received() == 10);
  CHECK(test.tally.elapsed() == 100ms);  // from the start mark to the last packet
}

TEST_CASE("after a loss the end mark ends the test") {
  Tallied test;
  test.packet(0, 0ms);
  test.packet(2, 5ms);
  test.sent(3, 6ms);
  CHECK(test.ending(500ms) == Ending::none);
  test.mark(kEndMark, 500ms);
  CHECK(test.ending(500ms) == Ending::mark);
  CHECK(test.tally.received() == 2);
  CHECK(test.tally.elapsed() == 5ms);  // the pause before the mark is not the packets' time
}

TEST_CASE("if the end marks are lost, silence since the last packet ends the test") {
  Tallied test;
  test.packet(0, 0ms);
  test.sent(3, 10ms);
  test.packet(1, 1500ms);
  CHECK(test.ending(3499ms) == Ending::none);
  CHECK(*test.tally.deadline() == kStart + 3500ms);
  CHECK(test.ending(3500ms) == Ending::silence);
}

TEST_CASE("a test that lost every datagram ends, too") {
  Tallied test;
  test.sent(3, 0ms);
  CHECK(test.ending(2s) == Ending::silence);
  CHECK(test.tally.elapsed() == 0ms);
}

TEST_CASE(
    "a mark that overtakes data does not end the test before the sender has reported that all is sent") {
  Tallied test;
  test.mark(kEndMark, 0ms);
  CHECK(test.ending(1h) == Ending::none);
}

TEST_CASE("duplicates count once, and reordering is counted") {
  Tallied test;
  for (const int number : {0, 2, 1, 2, 4}) test.packet(number, 1ms * number);
  CHECK(test.tally.received() == 4);
  CHECK(test.tally.duplicates() == 1);
  CHECK(test.tally.out_of_order() == 1);
}

TEST_CASE("datagrams of another test, another size or unknown origin are not counted") {
  Tallied test;
  test.tally.on_datagram(datagram(0, kBytes, kTest - 1), kStart);
  test.tally.on_datagram(datagram(0, kBytes + 1), kStart);
  test.tally.on_datagram(datagram(kMostPackets), kStart);
  test.tally.on_datagram({}, kStart);
  CHECK(test.tally.received() == 0);
  CHECK(test.tally.foreign() == 4);
}
