// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/ack_check.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <utility>

#include "tests/proxy/link/numbers.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;

namespace {

// What is said of an ACK with these ranges when 10 packets were sent.
boost::system::error_code ack_error(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> ranges) {
  PacketAck ack;
  for (const auto& [first, last] : ranges) ack.ranges.push_back({PacketNumber(first), PacketNumber(last)});
  const auto checked = check_ack(ack, 10_packet);
  return checked ? boost::system::error_code() : checked.error();
}

}  // namespace

TEST_CASE("an ACK is accepted if its ranges descend, and do not touch, below the next number") {
  CHECK_FALSE(ack_error({{0, 9}}));
  CHECK_FALSE(ack_error({{9, 9}, {5, 7}, {0, 3}}));
}

TEST_CASE("an ACK of a packet that was never sent is an error") {
  CHECK(ack_error({{0, 10}}) == AckError::never_sent);
  CHECK(ack_error({{~0ull - 1, ~0ull}, {0, 9}}) == AckError::never_sent);
}

TEST_CASE("an ACK is malformed if it is empty, or its ranges touch, overlap, ascend or are reversed") {
  CHECK(ack_error({}) == AckError::malformed);
  CHECK(ack_error({{4, 3}}) == AckError::malformed);
  CHECK(ack_error({{3, 3}, {1, 2}}) == AckError::malformed);
  CHECK(ack_error({{3, 5}, {1, 3}}) == AckError::malformed);
  CHECK(ack_error({{0, 0}, {3, 3}}) == AckError::malformed);
}
