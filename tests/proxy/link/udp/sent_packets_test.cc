// SPDX-License-Identifier: Apache-2.0
// Fates of packets by hand-made ACKs: losses by order and by time, probes, late arrivals, delivery rates, and
// peers that say what cannot be.
#include "proxy/link/udp/sent_packets.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "tests/proxy/link/numbers.h"
#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
PacketAck ack_of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> ranges,
                 Duration arrival = 0ms) {
  PacketAck ack;
  ack.arrival = arrival;
  for (const auto& [first, last] : ranges) ack.ranges.push_back({PacketNumber(first), PacketNumber(last)});
  return ack;
}

using Numbers = std::vector<std::uint64_t>;

struct Sender {
  SentPackets sent{kStart};
  SentEvents events;

  void send(TimePoint at, std::uint32_t count = 1) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto number = sent.next_number();
      sent.on_sent(number, at, {.bytes = 1000, .content = low_bits(number) + 7});
    }
  }
  Numbers lost() const { return numbers(events.lost); }
  Numbers acked() const { return numbers(events.acked); }
  Numbers spurious() const { return numbers(events.spurious); }
  static Numbers numbers(const std::vector<PacketFate>& fates) {
    Numbers result;
    for (const auto& fate : fates) result.push_back(fate.number.number());
    return result;
  }
};
}  // namespace

TEST_CASE("each packet is reported as acknowledged once, with its handle, whatever ACKs repeat") {
  Sender s;
  s.send(kStart, 10);
  REQUIRE(s.sent.on_ack(ack_of({{2, 4}}), kStart + 50ms, s.events));
  CHECK(s.acked() == Numbers{2, 3, 4});
  CHECK(s.events.acked[0].content == 9);
  REQUIRE(s.sent.on_ack(ack_of({{6, 6}, {1, 4}}), kStart + 51ms, s.events));
  CHECK(s.acked() == Numbers{6});
  CHECK(s.spurious() == Numbers{1});  // three that were sent after it had come before it
  REQUIRE(s.sent.on_ack(ack_of({{6, 6}, {1, 4}}), kStart + 52ms, s.events));
  CHECK(s.acked().empty());
  REQUIRE(s.sent.on_ack(ack_of({{5, 9}, {0, 3}}), kStart + 53ms, s.events));
  CHECK(s.sent.packets_in_flight() == 0);
  CHECK(s.sent.bytes_in_flight() == 0);
}

TEST_CASE("a packet overtaken by three others counts as lost") {
  Sender s;
  s.send(kStart, 5);
  REQUIRE(s.sent.on_ack(ack_of({{2, 3}}), kStart + 50ms, s.events));
  CHECK(s.lost() == Numbers{0});
  CHECK(s.events.sample.lost_bytes == 1000);
  CHECK(s.sent.bytes_in_flight() == 2000);
  CHECK(s.sent.next_timeout() == kStart + 56250us);  // packet 1, by time: 9/8 of the round trip
  s.sent.on_timeout(kStart + 56250us, s.events);
  CHECK(s.lost() == Numbers{1});
}

TEST_CASE("without an answer a probe is due, each time later, until an ACK arrives") {
  Sender s;
  s.send(kStart);
  REQUIRE(s.sent.on_ack(ack_of({{0, 0}}), kStart + 100ms, s.events));
  CHECK_FALSE(s.sent.next_timeout());
  s.send(kStart + 100ms);
  // 100 ms + 4 × 50 ms + 25 ms
  REQUIRE(s.sent.next_timeout() == kStart + 425ms);
  s.sent.on_timeout(kStart + 424ms, s.events);
  CHECK(s.events.probes == 0);
  s.sent.on_timeout(kStart + 425ms, s.events);
  CHECK(s.events.probes == 2);
  s.send(kStart + 425ms, 2);
  CHECK(s.sent.next_timeout() == kStart + 425ms + 650ms);
  CHECK(s.sent.timeouts_in_a_row() == 1);
  REQUIRE(s.sent.on_ack(ack_of({{3, 3}}), kStart + 525ms, s.events));
  CHECK(s.sent.timeouts_in_a_row() == 0);
  CHECK(s.lost() == Numbers{1});  // by time; packet 2 was sent with 3
}

TEST_CASE("the loss of a packet that asks for an immediate ACK is detected sooner") {
  Sender s;
  s.send(kStart);
  REQUIRE(s.sent.on_ack(ack_of({{0, 0}}), kStart + 100ms, s.events));
  s.sent.on_sent(1_packet, kStart + 200ms, {.bytes = 1000, .asks_at_once = true});
  REQUIRE(s.sent.next_timeout());
  const TimePoint prompt = *s.sent.next_timeout();
  s.sent.on_sent(2_packet, kStart + 200ms, {.bytes = 1000});
  REQUIRE(s.sent.next_timeout());
  CHECK(*s.sent.next_timeout() - prompt == SentPackets::kMaxAckDelay - SentPackets::kPromptAckDelay);
}

TEST_CASE("a loss and a probe that are due at the same late timer are both reported") {
  Sender s;
  s.send(kStart, 5);
  REQUIRE(s.sent.on_ack(ack_of({{2, 3}}), kStart + 50ms, s.events));
  REQUIRE(s.sent.next_timeout() == kStart + 56250us);  // packet 1, by time; 4 asks for a probe after 175 ms
  s.sent.on_timeout(kStart + 200ms, s.events);
  CHECK(s.lost() == Numbers{1});
  CHECK(s.events.probes == 2);
  CHECK(s.sent.next_timeout() > kStart + 200ms);
}

TEST_CASE("a packet that arrives after all cancels its loss, and later ones get that much time") {
  Sender s;
  for (int i = 0; i < 10; ++i) s.send(kStart + i * 1ms);
  REQUIRE(s.sent.on_ack(ack_of({{1, 5}}), kStart + 55ms, s.events));
  CHECK(s.lost() == Numbers{0});
  REQUIRE(s.sent.on_ack(ack_of({{0, 8}}), kStart + 58ms, s.events));
  CHECK(s.spurious() == Numbers{0});
  CHECK(s.acked() == Numbers{6, 7, 8});
  CHECK(s.events.sample.spurious_bytes == 1000);
  REQUIRE(s.events.epochs.size() == 1);
  CHECK(s.events.epochs[0].acked_bytes == 4000);
  CHECK(s.events.epochs[0].lost_bytes == -1000);
  CHECK(s.sent.counters().spurious_losses == 1);
  // It was overtaken by what was sent 8 ms later: so much and a quarter are waited for now.
  for (int i = 0; i < 20; ++i) s.send(kStart + 100ms + i * 1ms);  // 10 to 29
  REQUIRE(s.sent.on_ack(ack_of({{11, 20}}), kStart + 160ms, s.events));
  CHECK(s.lost() == Numbers{9});
  REQUIRE(s.sent.on_ack(ack_of({{11, 21}}), kStart + 161ms, s.events));
  CHECK(s.lost() == Numbers{10});
}

TEST_CASE("a lost MTU probe says nothing about the line") {
  Sender s;
  s.send(kStart);
  s.sent.on_sent(1_packet, kStart, {.bytes = 9000, .content = 1, .kind = PacketKind::mtu_probe});
  s.send(kStart, 3);
  REQUIRE(s.sent.on_ack(ack_of({{2, 4}, {0, 0}}), kStart + 50ms, s.events));
  CHECK(s.lost() == Numbers{1});
  CHECK(s.events.lost[0].kind == PacketKind::mtu_probe);
  CHECK(s.events.sample.lost_bytes == 0);
  CHECK(s.sent.bytes_in_flight() == 0);
}

TEST_CASE("packets with only ACKs are neither waited for nor lost, and do not accumulate") {
  Sender s;
  for (int i = 0; i < 100'000; ++i)
    s.sent.on_sent(s.sent.next_number(), kStart + i * 1ms,
                   {.bytes = 80, .content = 0, .kind = PacketKind::ack_only});
  CHECK(s.sent.bytes_in_flight() == 0);
  CHECK_FALSE(s.sent.next_timeout());
  REQUIRE(s.sent.on_ack(ack_of({{99'990, 99'990}}), kStart + 100s, s.events));
  CHECK(s.acked() == Numbers{99'990});
  CHECK(s.events.acked[0].kind == PacketKind::ack_only);
  CHECK(s.lost().empty());
  CHECK_FALSE(s.events.sample.rtt);
}

TEST_CASE("the delivery rate counts bytes between two arrivals, and lost bytes count as line time") {
  Sender s;
  s.send(kStart, 4);
  REQUIRE(s.sent.on_ack(ack_of({{0, 0}}, 50ms), kStart + 100ms, s.events));
  CHECK_FALSE(s.events.sample.delivery);
  CHECK(s.events.sample.round == 1);
  s.send(kStart + 100ms, 10);                                                         // 4 to 13
  REQUIRE(s.sent.on_ack(ack_of({{0, 3}}, 53ms), kStart + 130ms, s.events));           // this ACK was late
  REQUIRE(s.sent.on_ack(ack_of({{6, 9}, {0, 4}}, 160ms), kStart + 210ms, s.events));  // 5 is lost
  REQUIRE(s.events.sample.delivery);
  const auto& rate = *s.events.sample.delivery;
  CHECK(s.events.sample.round == 2);
  CHECK(rate.delivered_bytes == 8000);   // all but 0 and 5
  CHECK(rate.dispatched_bytes == 9000);  // 1 to 9
  CHECK(rate.arrival_interval == 110ms);
  CHECK(rate.interval == 110ms);
  CHECK(s.events.sample.forward_delay == 60ms);
}

TEST_CASE("the round trip ends when the ACK reached this host, however late it is read") {
  Sender s;
  s.send(kStart, 2);
  REQUIRE(s.sent.on_ack(ack_of({{0, 1}}), kStart + 40ms, kStart + 65ms, s.events));
  CHECK(s.events.sample.rtt == 40ms);
  CHECK(s.events.sample.now == kStart + 65ms);
  s.send(kStart + 70ms, 1);
  // By a clock that has just been set.
  REQUIRE(s.sent.on_ack(ack_of({{0, 2}}), kStart + 60ms, kStart + 90ms, s.events));
  CHECK(s.events.sample.rtt == 20ms);
}

TEST_CASE("a pause is not part of a delivery rate") {
  Sender s;
  s.send(kStart, 2);
  REQUIRE(s.sent.on_ack(ack_of({{0, 1}}, 50ms), kStart + 100ms, s.events));
  s.sent.on_idle();
  s.send(kStart + 10s, 11);
  REQUIRE(s.sent.on_ack(ack_of({{0, 2}}, 10'050ms), kStart + 10'100ms, s.events));
  CHECK_FALSE(s.events.sample.delivery);
  REQUIRE(s.sent.on_ack(ack_of({{0, 12}}, 10'080ms), kStart + 10'130ms, s.events));
  REQUIRE(s.events.sample.delivery);
  CHECK(s.events.sample.delivery->delivered_bytes == 10'000);
  CHECK(s.events.sample.delivery->interval == 30ms);
}

TEST_CASE("a pause is not part of a delivery rate, even if earlier data is acknowledged after it") {
  Sender s;
  s.send(kStart, 3);
  REQUIRE(s.sent.on_ack(ack_of({{0, 1}}, 50ms), kStart + 100ms, s.events));
  s.sent.on_idle();
  s.send(kStart + 10s, 1);  // the answer has been asked for before the last ACK came
  REQUIRE(s.sent.on_ack(ack_of({{0, 2}}, 55ms), kStart + 10s + 1ms, s.events));
  s.send(kStart + 10s + 2ms, 40);
  REQUIRE(s.sent.on_ack(ack_of({{0, 3}}, 10'050ms), kStart + 10'100ms, s.events));
  const auto round = s.events.sample.round;
  CHECK_FALSE(s.events.sample.delivery);
  REQUIRE(s.sent.on_ack(ack_of({{0, 43}}, 10'090ms), kStart + 10'140ms, s.events));
  REQUIRE(s.events.sample.delivery);
  CHECK(s.events.sample.delivery->delivered_bytes == 40'000);
  CHECK(s.events.sample.delivery->interval == 40ms);
  CHECK(s.events.sample.round <= round + 1);
}

TEST_CASE("sends with nothing in flight between them are measured together if only the pacer delayed them") {
  const bool had_more = GENERATE(true, false);
  const Duration apart = GENERATE(Duration(1ms), Duration(200ms));
  SentPackets sent{kStart};
  SentEvents events;
  std::optional<DeliveryRate> found;
  for (std::uint32_t i = 0; i < 60; ++i) {
    const TimePoint at = kStart + i * apart;
    const auto number = sent.next_number();
    sent.on_sent(number, at, {.bytes = 1000, .content = i, .application_limited = !had_more});
    REQUIRE(sent.on_ack(ack_of({{0, number.number()}}, i * apart), at + 50us, events));
    if (events.sample.delivery) found = events.sample.delivery;
  }
  REQUIRE(found.has_value() == had_more);
  if (!had_more) return;
  CHECK(found->arrival_interval >= SentPackets::kMinTrain);
  CHECK(found->dispatched_bytes == 1000u * static_cast<unsigned>(found->interval / apart));
}

TEST_CASE("an ACK of unsent packets, or out of order, is an error and changes nothing") {
  Sender s;
  s.send(kStart, 5);
  CHECK(s.sent.on_ack(ack_of({{0, 5}}), kStart, s.events).error() == AckError::never_sent);
  CHECK(s.sent.on_ack(ack_of({{~0ull - 1, ~0ull}}), kStart, s.events).error() == AckError::never_sent);
  CHECK(s.sent.on_ack(ack_of({}), kStart, s.events).error() == AckError::malformed);
  CHECK(s.sent.on_ack(ack_of({{4, 3}}), kStart, s.events).error() == AckError::malformed);
  CHECK(s.sent.on_ack(ack_of({{3, 3}, {1, 2}}), kStart, s.events).error() == AckError::malformed);
  CHECK(s.sent.on_ack(ack_of({{0, 0}, {3, 3}}), kStart, s.events).error() == AckError::malformed);
  CHECK(s.sent.packets_in_flight() == 5);
  REQUIRE(s.sent.on_ack(ack_of({{0, 4}}), kStart + 1ms, s.events));
  CHECK(s.acked().size() == 5);
}

TEST_CASE("a carrier that ends returns every handle") {
  Sender s;
  s.send(kStart, 5);
  REQUIRE(s.sent.on_ack(ack_of({{1, 2}}), kStart + 1ms, s.events));
  s.sent.abandon(s.events);
  CHECK(s.lost() == Numbers{0, 3, 4});
  CHECK(s.sent.bytes_in_flight() == 0);
  CHECK_FALSE(s.sent.next_timeout());
}

TEST_CASE("for any ACKs, each handle is returned once and the bytes in flight are correct") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random{seed};
  for (int round = 0; round < 20; ++round) {
    Sender s;
    std::map<PacketNumber, int> back;         // how often a handle came
    std::set<PacketNumber> arrived, waiting;  // at the receiver; not yet given back
    TimePoint now = kStart;
    const auto check = [&] {
      for (const auto& fates : {s.events.acked, s.events.lost})
        for (const auto& fate : fates) {
          REQUIRE(fate.content == low_bits(fate.number) + 7);
          REQUIRE(++back[fate.number] == 1);
          REQUIRE(waiting.erase(fate.number) == 1);
        }
      for (const auto& fate : s.events.acked) REQUIRE(arrived.count(fate.number) == 1);
      for (const auto& fate : s.events.spurious) REQUIRE(arrived.count(fate.number) == 1);
      REQUIRE(s.sent.packets_in_flight() == waiting.size());
      REQUIRE(s.sent.bytes_in_flight() == 1000 * waiting.size());
    };
    for (int step = 0; step < 2000; ++step) {
      now += std::chrono::microseconds(random() % 3000);
      if (random() % 3) {
        const auto number = s.sent.next_number();
        s.send(now);
        waiting.insert(number);
        if (random() % 10) arrived.insert(number);
      } else if (random() % 4) {
        // An ACK of some of what arrived, old or new, as a receiver that forgets may send it.
        PacketAck ack;
        ack.arrival = now - kStart;
        const PacketNumber next = s.sent.next_number();
        const PacketNumber from = next - std::min<std::uint64_t>(random() % 50, next.number());
        for (auto it = arrived.lower_bound(from);
             it != arrived.begin() && ack.ranges.size() < kMaxAckRanges;) {
          --it;
          if (!ack.ranges.empty() && *it + 1 == ack.ranges.back().first)
            ack.ranges.back().first = *it;
          else if (ack.ranges.empty() || *it + 1 < ack.ranges.back().first)
            ack.ranges.push_back({*it, *it});
        }
        if (ack.ranges.empty()) continue;
        REQUIRE(s.sent.on_ack(ack, now, s.events));
        check();
      } else {
        s.sent.on_timeout(now, s.events);
        check();
        if (const auto next = s.sent.next_timeout()) REQUIRE(*next > now);
      }
    }
    s.sent.abandon(s.events);
    check();
    REQUIRE(waiting.empty());
  }
}
