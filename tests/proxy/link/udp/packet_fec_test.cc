// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_fec.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/numbers.h"
#include "tests/proxy/link/start.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;

namespace {

constexpr fec::Mode kOneForTwo{.kind = fec::Mode::Kind::fixed, .source_packets = 2, .repair_packets = 1};

// A packet of the sender: its symbol, its number and the frames behind the symbol.
struct SentSymbol {
  SymbolFrame symbol;
  PacketNumber number;
  Buffer frames;
};
SentSymbol send_symbol(PacketFec& sender, PacketNumber number, char letter) {
  const auto symbol = sender.next_symbol(true, kOneForTwo);
  REQUIRE(symbol);
  SentSymbol sent{*symbol, number, Buffer(100, std::byte(letter))};
  sender.add_symbol(symbol->of, number, sent.frames);
  sender.on_sent(symbol->of, kOneForTwo, kStart);
  return sent;
}

}  // namespace

TEST_CASE("PacketFec: a lost packet comes back with its frames and its number") {
  PacketFec sender, receiver;
  // Beyond 32 bits: the number is told by its low half.
  const PacketNumber first((std::uint64_t{1} << 40) + 5);
  const SentSymbol lost = send_symbol(sender, first, 'a'), kept = send_symbol(sender, first + 1, 'b');
  const auto repair = sender.next_repair(kStart);
  REQUIRE(repair);
  receiver.on_symbol(kept.symbol, kept.number, kept.frames);
  CHECK_FALSE(receiver.poll_restored(first + 2));
  receiver.on_repair(*repair);
  const auto restored = receiver.poll_restored(first + 2);
  REQUIRE(restored);
  CHECK(restored->number == lost.number);
  CHECK(Buffer(restored->frames.begin(), restored->frames.end()) == lost.frames);
  CHECK_FALSE(receiver.poll_restored(first + 2));
  CHECK(receiver.counters().recovered == 1);
}

TEST_CASE("PacketFec: a repair that finds nothing missing is counted as wasted") {
  PacketFec sender, receiver;
  for (const SentSymbol& sent : {send_symbol(sender, 0_packet, 'a'), send_symbol(sender, 1_packet, 'b')})
    receiver.on_symbol(sent.symbol, sent.number, sent.frames);
  receiver.on_repair(*sender.next_repair(kStart));
  CHECK_FALSE(receiver.poll_restored(2_packet));
  CHECK(receiver.counters().wasted == 1);
}

TEST_CASE(
    "PacketFec: a repair without room is the next one again, and without protection there is no symbol") {
  PacketFec sender;
  CHECK_FALSE(sender.next_symbol(true, {.kind = fec::Mode::Kind::off}));
  send_symbol(sender, 0_packet, 'a');
  send_symbol(sender, 1_packet, 'b');
  const auto repair = sender.next_repair(kStart);
  REQUIRE(repair);
  CHECK_FALSE(sender.repairs_ready());
  sender.put_back(*repair);
  CHECK(sender.repairs_ready());
  const auto again = sender.next_repair(kStart);
  REQUIRE(again);
  CHECK(again->repair.key == repair->repair.key);
  CHECK_FALSE(sender.next_repair(kStart));
}

TEST_CASE("PacketFec: the modes of the configuration") {
  using Mode = config::Fec::Mode;
  CHECK(mode_of({.mode = Mode::off}).kind == fec::Mode::Kind::off);
  CHECK(mode_of({.mode = Mode::adaptive}).kind == fec::Mode::Kind::adaptive);
  const fec::Mode fixed = mode_of({.mode = Mode::fixed, .source_packets = 10, .repair_packets = 3});
  CHECK(fixed.kind == fec::Mode::Kind::fixed);
  CHECK((fixed.source_packets == 10 && fixed.repair_packets == 3));
}
