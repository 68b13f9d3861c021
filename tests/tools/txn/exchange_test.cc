// SPDX-License-Identifier: Apache-2.0
// The transactions over UDP in virtual time: everything arrives, once and right, whatever the line does; and
// what is sent again is what the source's rules say. Each byte is checked by the exchange itself.
#include "tools/txn/exchange.h"

#include <catch2/catch.hpp>

#include "tools/measuring/trouble.h"
#include "txn/simulated_pair.h"

using namespace longhaul;
using namespace longhaul::txn;
using namespace std::chrono_literals;

namespace {

Workload small_file(std::uint32_t bytes = 100'000) {
  Workload workload = standard(Script::filetransf_long, Protocol::udp);
  workload.file_bytes = bytes;
  workload.send_buffer = 1'030;    // 1,000 bytes of the file
  workload.window_bytes = 10'300;  // 10 datagrams
  workload.key = 42;
  return workload;
}

constexpr LineOptions kClean{};  // a round trip of 40 ms

bool is_data(const Datagram& datagram, std::uint32_t window, std::uint16_t index, std::uint16_t burst = 0) {
  return datagram.kind == Kind::data && datagram.direction == Direction::request &&
         datagram.window == window && datagram.index == index && datagram.burst == burst;
}

}  // namespace

TEST_CASE("a message takes a round trip per window, and its answer follows the last window", "[txn]") {
  SimulatedPair pair{small_file(), kClean};
  const TimePoint began = pair.now;
  REQUIRE(pair.transact(0));
  CHECK(pair.now - began == 10 * 40ms);
  CHECK(pair.requester.counts().sent_again == 0);
  CHECK(pair.responder.requests() == 1);
}

TEST_CASE("missing packets of a window are requested and sent again alone", "[txn]") {
  SimulatedPair pair{small_file(), kClean, [](Direction, unsigned, const Datagram& datagram) {
                       return is_data(datagram, 3, 2) || is_data(datagram, 3, 5);
                     }};
  const TimePoint began = pair.now;
  REQUIRE(pair.transact(0));
  CHECK(pair.now - began == 11 * 40ms);
  CHECK(pair.requester.counts().negatives == 1);
  CHECK(pair.requester.counts().sent_again == 2);
  CHECK(pair.requester.counts().timeouts == 0);
}

TEST_CASE("a window whose last packet is lost is sent again completely, after the timeout", "[txn]") {
  Workload workload = small_file();
  workload.retransmit_after = 300ms;
  SimulatedPair pair{workload, kClean,
                     [](Direction, unsigned, const Datagram& datagram) { return is_data(datagram, 4, 9); }};
  const TimePoint began = pair.now;
  REQUIRE(pair.transact(0));
  CHECK(pair.now - began == 10 * 40ms + 300ms);
  CHECK(pair.requester.counts().timeouts == 1);
  CHECK(pair.requester.counts().sent_again == 10);
}

TEST_CASE("a window whose acknowledgement is lost is acknowledged again", "[txn]") {
  unsigned lost = 0;
  SimulatedPair pair{small_file(), kClean, [&](Direction, unsigned, const Datagram& datagram) {
                       return datagram.kind == Kind::acknowledgement && datagram.window == 6 && lost++ < 2;
                     }};
  REQUIRE(pair.transact(0));
  CHECK(pair.requester.counts().timeouts == 2);
  CHECK(pair.responder.requests() == 1);
}

TEST_CASE("an answer acknowledges its request, and the next request the answer", "[txn]") {
  SimulatedPair pair{small_file(1'000), kClean, [](Direction, unsigned, const Datagram& datagram) {
                       return datagram.kind != Kind::data;
                     }};
  for (std::uint32_t number = 0; number < 20; ++number) REQUIRE(pair.transact(number));
  CHECK(pair.requester.counts().sent_again == 0);
  CHECK(pair.responder.requests() == 20);
}

TEST_CASE("the timeout follows the measured round trips", "[txn]") {
  SimulatedPair far{small_file(), {.delay = 1500ms}};  // longer than the first time-out
  REQUIRE(far.transact(0));
  const auto first = far.requester.counts().timeouts;
  CHECK(first >= 1);
  CHECK(first <= 4);
  for (std::uint32_t number = 1; number < 5; ++number) REQUIRE(far.transact(number));
  CHECK(far.requester.counts().timeouts == first);

  RetransmitTimer timer{0ms};
  for (int i = 0; i < 50; ++i) timer.measured(100ms);
  CHECK(timer.timeout() >= 100ms);
  CHECK(timer.timeout() < 120ms);
  timer.expired();
  CHECK(timer.timeout() >= 200ms);
}

TEST_CASE("despite any loss, duplication and reordering every transaction completes correctly", "[txn]") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random{seed};
    const auto share = [&](double most) { return std::uniform_real_distribution<>{0, most}(random); };
    const LineOptions line{seed, std::chrono::milliseconds{1 + seed % 100}, share(0.3), share(0.3),
                           share(0.3)};
    Workload workload = standard(static_cast<Script>(seed % 3), Protocol::udp);
    workload.file_bytes = 1 + static_cast<std::uint32_t>(share(60'000));
    workload.send_buffer = 31 + static_cast<std::uint32_t>(share(2'000));
    workload.file_bytes = std::min(workload.file_bytes, (workload.send_buffer - 30) * 300);  // not for ever
    workload.window_bytes = 1 + static_cast<std::uint32_t>(share(30'000));
    workload.key = seed;
    INFO("seed " << seed << ", loss " << line.loss << ", doubled " << line.doubled << ", late " << line.late
                 << ", file " << workload.file_bytes << ", datagram " << workload.send_buffer << ", window "
                 << workload.window_bytes);
    SimulatedPair pair{workload, line};
    for (std::uint32_t number = 0; number < 10; ++number) REQUIRE(pair.transact(number));
    CHECK(pair.responder.requests() == 10);
  }
}

TEST_CASE("a wrong byte ends the run with a sentence", "[txn]") {
  const Workload workload = small_file(1'000);
  Responder responder{workload, Family::ipv4};
  Requester requester{workload, Family::ipv4};
  requester.begin(0);
  Buffer out;
  REQUIRE(requester.poll_transmit({}, out));
  out[500] ^= std::byte{1};
  CHECK_THROWS_WITH(responder.receive({}, out), Catch::Contains("wrong bytes"));
}

TEST_CASE("datagrams of another pair and invalid datagrams count as a stranger's", "[txn]") {
  Workload workload = small_file(1'000);
  Responder responder{workload, Family::ipv4};
  workload.key = 43;
  Requester other{workload, Family::ipv4};
  other.begin(0);
  Buffer out;
  REQUIRE(other.poll_transmit({}, out));
  CHECK(responder.receive({}, out) == Exchange::Of::stranger);
  for (std::size_t size = 0; size < kDatagramHeader; ++size)
    CHECK(responder.receive({}, Bytes(out).first(size)) == Exchange::Of::stranger);
  CHECK(responder.requests() == 0);
}

TEST_CASE("datagrams are decoded as encoded", "[txn]") {
  Datagram datagram;
  datagram.kind = Kind::negative;
  datagram.direction = Direction::response;
  datagram.burst = 513;
  datagram.index = 7;
  datagram.key = 0x0123456789abcdef;
  datagram.connection = 0xfffffffe;
  datagram.message = 3;
  datagram.window = 4;
  datagram.size = 5;
  datagram.missing = {0, 2, 4095};
  Buffer bytes;
  encode(datagram, bytes);
  const std::string_view golden{
      "\xe7\x07\x02\x01\x00\x07\x01\x23\x45\x67\x89\xab\xcd\xef\xff\xff\xff\xfe\x00\x00\x00\x03\x00\x00\x00"
      "\x04\x00\x00"
      "\x00\x05\x00\x00\x00\x02\x0f\xff",
      36};
  CHECK(as_text(bytes) == golden);
  const auto back = parse_datagram(bytes);
  REQUIRE(back);
  CHECK(back->kind == Kind::negative);
  CHECK(back->direction == Direction::response);
  CHECK(back->connection == 0xfffffffe);
  CHECK(back->missing == datagram.missing);
}
