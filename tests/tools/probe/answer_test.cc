// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/answer.h"

#include <catch2/catch.hpp>

#include "made_packets.h"

using namespace longhaul;
using namespace longhaul::probe;
using namespace longhaul::probe::made;

TEST_CASE("a probe's number is found in every kind of answer, in both families") {
  for (const Family family : {Family::v4, Family::v6})
    for (const Kind kind : {Kind::udp, Kind::icmp, Kind::tcp}) {
      const Flow flow = flow_of(family, kind);
      for (const unsigned size : {64u, 100u, 577u, 1500u}) {
        const auto probe = make_probe(flow, 4711, size);
        const auto error = icmp_error(flow, family == Family::v4 ? 11 : 3, 0, probe);
        const auto answer = read_icmp(flow, error);
        REQUIRE(answer);
        CHECK(answer->what == What::expired);
        CHECK(answer->id == 4711);
        CHECK(answer->ip_bytes == error.size() + (family == Family::v4 ? 0 : 40));
      }
    }
}

TEST_CASE("every probe has a right checksum, and its number in a field that routers do not hash") {
  for (const Family family : {Family::v4, Family::v6})
    for (const Kind kind : {Kind::udp, Kind::icmp, Kind::tcp}) {
      const Flow flow = flow_of(family, kind);
      const auto one = make_probe(flow, 1, 200), other = make_probe(flow, 65534, 200);
      CHECK(one.size() == 200 - ip_header_bytes(family));
      CHECK(whole_sum(flow, one) == 0xffff);
      CHECK(whole_sum(flow, other) == 0xffff);
      CHECK(std::equal(one.begin(), one.begin() + 4, other.begin()));
    }
}

TEST_CASE("an odd number of bytes is summed as if a zero byte followed") {
  for (const unsigned size : {81u, 99u, 1499u}) {
    const Flow flow = flow_of(Family::v4, Kind::udp);
    CHECK(whole_sum(flow, make_probe(flow, 9, size)) == 0xffff);
  }
}

TEST_CASE("the meaning of an error follows from its type and code") {
  const auto what = [](Family family, unsigned type, unsigned code) {
    const Flow flow = flow_of(family, Kind::udp);
    const auto answer = read_icmp(flow, icmp_error(flow, type, code, make_probe(flow, 3, 100), 1400));
    return answer ? std::optional(answer->what) : std::nullopt;
  };
  CHECK(what(Family::v4, 3, 3) == What::reached);
  CHECK(what(Family::v4, 3, 1) == What::unreachable);
  CHECK(what(Family::v4, 3, 4) == What::too_big);
  CHECK(what(Family::v4, 3, 13) == What::prohibited);
  CHECK(what(Family::v4, 11, 1) == std::nullopt);  // of reassembly: not on the way
  CHECK(what(Family::v4, 5, 0) == std::nullopt);
  CHECK(what(Family::v6, 1, 4) == What::reached);
  CHECK(what(Family::v6, 1, 0) == What::unreachable);
  CHECK(what(Family::v6, 1, 1) == What::prohibited);
  CHECK(what(Family::v6, 2, 0) == What::too_big);
  const Flow flow = flow_of(Family::v6, Kind::udp);
  CHECK(read_icmp(flow, icmp_error(flow, 2, 0, make_probe(flow, 3, 100), 1400))->mtu == 1400);
  const Flow four = flow_of(Family::v4, Kind::udp);
  CHECK(read_icmp(four, icmp_error(four, 3, 4, make_probe(four, 3, 100), 1400))->mtu == 1400);
}

TEST_CASE("a packet of another flow is not an answer") {
  const Flow flow = flow_of(Family::v4, Kind::udp);
  const auto probe = make_probe(flow, 3, 100);
  Flow other_port = flow, other_host = flow, other_kind = flow;
  other_port.from_port ^= 1;
  other_host.to[3] ^= std::byte{1};
  other_kind.kind = Kind::tcp;
  const auto error = icmp_error(flow, 11, 0, probe);
  CHECK(read_icmp(flow, error));
  CHECK_FALSE(read_icmp(other_port, error));
  CHECK_FALSE(read_icmp(other_host, error));
  CHECK_FALSE(read_icmp(other_kind, error));
}

TEST_CASE("a truncated answer is read within its bounds or not at all") {
  for (const Kind kind : {Kind::udp, Kind::icmp, Kind::tcp}) {
    const Flow flow = flow_of(Family::v4, kind);
    const auto error = icmp_error(flow, 11, 0, make_probe(flow, 77, 200));
    for (std::size_t size = 0; size < error.size(); ++size) {
      const std::vector<std::byte> cut(error.begin(), error.begin() + static_cast<std::ptrdiff_t>(size));
      const auto answer = read_icmp(flow, cut);
      CHECK(answer.has_value() == (size >= 20 + 8 + 20 + 8));  // routers quote eight bytes at least
      if (answer) CHECK(answer->id == 77);
    }
  }
}

TEST_CASE("an echo reply and a TCP answer come from the host itself") {
  const Flow echo = flow_of(Family::v4, Kind::icmp);
  auto reply = make_probe(echo, 500, 128);
  reply[0] = std::byte{0};
  const auto answer = read_icmp(echo, behind_ip(echo, IPPROTO_ICMP, reply));
  REQUIRE(answer);
  CHECK(answer->what == What::reached);
  CHECK(answer->id == 500);

  for (const unsigned data : {0u, 1u, 1400u}) {  // a reset acknowledges the data as well
    const Flow flow = flow_of(Family::v4, Kind::tcp);
    const auto segment = tcp_answer(flow, kRst | kAck, sequence_of(65534) + 1 + data, {});
    const auto reset = read_tcp(flow, behind_ip(flow, IPPROTO_TCP, segment));
    REQUIRE(reset);
    CHECK(reset->id == 65534);
    CHECK(reset->what == What::reached);
  }
}
