// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/negotiated.h"

#include <catch2/catch.hpp>

using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

NegotiateRequest offer_with(std::uint32_t capabilities) {
  NegotiateRequest offer;
  offer.capabilities = capabilities;
  return offer;
}

NegotiateResponse choice(Dialect dialect, std::uint32_t capabilities) {
  NegotiateResponse chosen;
  chosen.dialect = dialect;
  chosen.capabilities = capabilities;
  chosen.max_read_bytes = 1 << 20;
  chosen.max_write_bytes = 2 << 20;
  chosen.max_transact_bytes = 3 << 20;
  return chosen;
}

}  // namespace

TEST_CASE("before NEGOTIATE a connection has no dialect and the limits of the oldest") {
  const Negotiated negotiated;
  CHECK(negotiated.dialect() == Dialect::none);
  CHECK_FALSE(negotiated.multi_credit());
  CHECK_FALSE(negotiated.multi_channel());
  CHECK(negotiated.max_read_bytes() == 64 << 10);
  CHECK(negotiated.max_write_bytes() == 64 << 10);
  CHECK(negotiated.max_transact_bytes() == 64 << 10);
}

TEST_CASE("the server chooses dialect and limits, and a wildcard chooses nothing") {
  Negotiated negotiated;
  negotiated.chosen(choice(Dialect::wildcard, capabilities::large_mtu));
  CHECK(negotiated.dialect() == Dialect::none);
  CHECK(negotiated.max_read_bytes() == 64 << 10);
  negotiated.chosen(choice(Dialect::smb_3_0, capabilities::large_mtu));
  CHECK(negotiated.dialect() == Dialect::smb_3_0);
  CHECK(negotiated.multi_credit());
  CHECK(negotiated.max_read_bytes() == 1 << 20);
  CHECK(negotiated.max_write_bytes() == 2 << 20);
  CHECK(negotiated.max_transact_bytes() == 3 << 20);
}

TEST_CASE("sessions may use several connections if both sides say so, in dialects that know it") {
  const auto agree = [](std::uint32_t offered, std::uint32_t chosen, Dialect dialect) {
    Negotiated negotiated;
    negotiated.offered(offer_with(offered));
    negotiated.chosen(choice(dialect, chosen));
    return negotiated.multi_channel();
  };
  constexpr std::uint32_t kChannels = capabilities::multi_channel;
  CHECK(agree(kChannels, kChannels, Dialect::smb_3_0));
  CHECK_FALSE(agree(0, kChannels, Dialect::smb_3_0));
  CHECK_FALSE(agree(kChannels, 0, Dialect::smb_3_0));
  CHECK_FALSE(agree(kChannels, kChannels, Dialect::smb_2_1));
}

TEST_CASE("a server cannot announce transfers that fit no frame") {
  Negotiated negotiated;
  NegotiateResponse greedy = choice(Dialect::smb_3_1_1, capabilities::large_mtu);
  greedy.max_read_bytes = greedy.max_write_bytes = greedy.max_transact_bytes = ~0u;
  negotiated.chosen(greedy);
  CHECK(negotiated.max_read_bytes() == Negotiated::kLargestTransfer);
  CHECK(negotiated.max_write_bytes() == Negotiated::kLargestTransfer);
  CHECK(negotiated.max_transact_bytes() == Negotiated::kLargestTransfer);
}
