// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/handshake_gate.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace std::chrono_literals;
using boost::asio::ip::make_address;

namespace {

const auto kGateStart = TimePoint(1h);

// What became of a connection from there: its standing, or why it was refused.
std::string standing_of(HandshakeGate& gate, const char* from, TimePoint now = kGateStart,
                        HandshakeGate::GiveUp give_up = {}) {
  const auto place = gate.admit(make_address(from), now, std::move(give_up));
  if (!place) return std::string(explain(place.error()).code);
  constexpr std::array kNames{"known", "first", "repeated"};
  return kNames[static_cast<std::size_t>(place->standing)];
}

std::string stranger(int number) {
  return "10.1." + std::to_string(number / 250) + "." + std::to_string(number % 250);
}

}  // namespace

TEST_CASE("a source may start a number of handshakes at once, then a number per second") {
  HandshakeGate gate(1000);
  TimePoint now = kGateStart;
  const auto admitted = [&](int attempts) {
    int count = 0;
    for (int i = 0; i < attempts; ++i)
      if (auto place = gate.admit(make_address("10.0.0.1"), now, {})) gate.leave(*place), ++count;
    return count;
  };
  CHECK(admitted(1000) == HandshakeGate::kBurst);
  now += 1s;
  CHECK(admitted(1000) == HandshakeGate::kPerSecond);
  CHECK(standing_of(gate, "10.0.0.1", now) == "source_rate");
  CHECK(standing_of(gate, "10.0.0.2", now) == "first");
  now += 1h;
  CHECK(admitted(1000) == HandshakeGate::kBurst);
}

TEST_CASE("addresses of one IPv6 /64 count as one source, and a mapped address counts as IPv4") {
  HandshakeGate gate(1000);
  CHECK(standing_of(gate, "2001:db8:1:2::1") == "first");
  CHECK(standing_of(gate, "2001:db8:1:2:ffff::9") == "repeated");
  CHECK(standing_of(gate, "2001:db8:1:3::1") == "first");
  CHECK(standing_of(gate, "10.0.0.1") == "first");
  CHECK(standing_of(gate, "::ffff:10.0.0.1") == "repeated");
  CHECK(standing_of(gate, "::ffff:10.0.0.2") == "first");
}

TEST_CASE("a source uses at most a quarter of the places") {
  HandshakeGate gate(8);
  CHECK(standing_of(gate, "10.0.0.1") == "first");
  CHECK(standing_of(gate, "10.0.0.1") == "repeated");
  CHECK(standing_of(gate, "10.0.0.1") == "no_place");
  CHECK(gate.in_progress() == 2);
}

TEST_CASE("when all places are taken, the oldest handshake of a source with several gives up its place") {
  HandshakeGate gate(8);
  std::vector<std::string> gave_up;
  const auto enter = [&](const std::string& from) {
    return standing_of(gate, from.c_str(), kGateStart, [&gave_up, from] { gave_up.push_back(from); });
  };
  for (int i = 1; i <= 4; ++i)
    for (int both = 0; both < 2; ++both) enter("10.0.0." + std::to_string(i));
  CHECK(gate.in_progress() == 8);
  CHECK(enter("10.0.0.9") == "first");
  CHECK(gave_up == std::vector<std::string>{"10.0.0.1"});
  for (int i = 10; i < 13; ++i) CHECK(enter("10.0.0." + std::to_string(i)) == "first");
  CHECK(gave_up == std::vector<std::string>{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"});
  // Only first contacts are left: one more takes the place of the oldest, a second handshake of one does not.
  CHECK(enter("10.0.0.12") == "no_place");
  CHECK(enter("10.0.0.20") == "first");
  CHECK(gave_up.back() == "10.0.0.1");
  CHECK(gate.in_progress() == 8);
}

TEST_CASE("places are reserved for peers' addresses, whatever strangers do") {
  HandshakeGate gate(8);
  gate.know({make_address("192.0.2.1"), make_address("2001:db8::1")});
  for (int i = 0; i < 10'000; ++i) standing_of(gate, stranger(i).c_str());
  CHECK(gate.in_progress() == 8);
  int gave_up = 0;
  for (std::uint32_t i = 0; i < HandshakeGate::kPlacesPerKnown; ++i)
    CHECK(standing_of(gate, "192.0.2.1", kGateStart, [&] { ++gave_up; }) == "known");
  CHECK(standing_of(gate, "::ffff:192.0.2.1", kGateStart, [&] { ++gave_up; }) == "known");
  CHECK(gave_up == 1);  // the oldest of that address
  CHECK(standing_of(gate, "2001:db8::1") == "known");
  CHECK(standing_of(gate, "2001:db8::2") == "first");  // a neighbour is a stranger
  // Beyond its own budget it is one like any other.
  int known = 0;
  for (int i = 0; i < 1000; ++i) known += standing_of(gate, "2001:db8::1") == "known";
  CHECK(known == HandshakeGate::kKnownBurst - 1);
  gate.know({make_address("2001:db8::1")});
  CHECK(standing_of(gate, "192.0.2.2") == "first");
}

TEST_CASE("processor time of handshakes is charged to the source's budget") {
  HandshakeGate gate(1000);
  const auto place = gate.admit(make_address("10.0.0.1"), kGateStart, {});
  REQUIRE(place.has_value());
  gate.charge(*place, 10ms, kGateStart);
  int more = 0;
  for (int i = 0; i < 100; ++i) more += standing_of(gate, "10.0.0.1") == "repeated";
  CHECK(more == HandshakeGate::kBurst - 1 - 10);
  // A debt is bounded, so that nobody is locked out for long.
  gate.charge(*place, 1h, kGateStart);
  CHECK(standing_of(gate, "10.0.0.1", kGateStart + 10s) == "repeated");
}
