// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/agreed_keys.h"

#include <catch2/catch.hpp>

#include "tls_sites.h"

namespace longhaul::link {
using namespace testing;
using longhaul::testing::run;

namespace {

struct KeyedSites {
  asio::io_context io;
  TemporaryFolder logs;
  TlsSite near{io, "near", std::make_shared<KeyLog>(logs.path() / "keys")}, far{io, "far"};
};

Agreed agreed(TlsConnection connection, Side side, std::uint64_t epoch) {
  return {std::move(connection), side, Token{}, {.epoch = epoch}, {.blocks = kBlockVersion}};
}

struct BothAgreed {
  Agreed near, far;
};
asio::awaitable<BothAgreed> agree(KeyedSites& of, std::uint64_t epoch) {
  TlsPair pair = co_await connected(of.near, of.far);
  co_return BothAgreed{agreed(std::move(pair.dialler), Side::dialler, epoch),
                       agreed(std::move(pair.acceptor), Side::acceptor, epoch)};
}

bool same(const udp::CarrierKeys& a, const udp::CarrierKeys& b) {
  return a.dialler_to_acceptor.id == b.dialler_to_acceptor.id &&
         a.dialler_to_acceptor.secret.bytes == b.dialler_to_acceptor.secret.bytes &&
         a.acceptor_to_dialler.id == b.acceptor_to_dialler.id &&
         a.acceptor_to_dialler.secret.bytes == b.acceptor_to_dialler.secret.bytes;
}

}  // namespace

TEST_CASE("both ends derive the same keys of packets, others for each session, epoch and connection") {
  KeyedSites sites;
  run(sites.io, [](KeyedSites& of) -> asio::awaitable<void> {
    Token session{}, other_session{};
    session.fill(std::byte{1});
    other_session.fill(std::byte{2});
    BothAgreed ends = co_await agree(of, 7);
    const auto here = packet_keys(of.near.shared, ends.near, session, Side::dialler);
    const auto there = packet_keys(of.far.shared, ends.far, session, Side::acceptor);
    REQUIRE((here && there));
    CHECK(same(*here, *there));
    CHECK_FALSE(here->dialler_to_acceptor.secret.bytes == here->acceptor_to_dialler.secret.bytes);
    CHECK_FALSE(same(*here, *packet_keys(of.near.shared, ends.near, other_session, Side::dialler)));
    ends.near.udp.epoch = 8;
    CHECK_FALSE(same(*here, *packet_keys(of.near.shared, ends.near, session, Side::dialler)));
    BothAgreed next = co_await agree(of, 7);
    CHECK_FALSE(same(*here, *packet_keys(of.near.shared, next.near, session, Side::dialler)));
  }(sites));
}

TEST_CASE("each path has keys of its own, the same at both ends, and none those of a link without paths") {
  KeyedSites sites;
  run(sites.io, [](KeyedSites& of) -> asio::awaitable<void> {
    BothAgreed ends = co_await agree(of, 7);
    std::vector<udp::CarrierKeys> all{*packet_keys(of.near.shared, ends.near, Token{}, Side::dialler)};
    for (std::uint64_t path = 0; path < kMaxPaths; ++path) {
      const auto here = packet_keys(of.near.shared, ends.near, Token{}, Side::dialler, path);
      const auto there = packet_keys(of.far.shared, ends.far, Token{}, Side::acceptor, path);
      REQUIRE((here && there));
      CHECK(same(*here, *there));
      for (const udp::CarrierKeys& other : all) {
        CHECK_FALSE(here->dialler_to_acceptor.id == other.dialler_to_acceptor.id);
        CHECK_FALSE(here->dialler_to_acceptor.secret.bytes == other.dialler_to_acceptor.secret.bytes);
        CHECK_FALSE(here->acceptor_to_dialler.secret.bytes == other.acceptor_to_dialler.secret.bytes);
      }
      all.push_back(*here);
    }
  }(sites));
}

TEST_CASE("the keys of packets are written to the key log, where there is one") {
  KeyedSites sites;
  run(sites.io, [](KeyedSites& of) -> asio::awaitable<void> {
    BothAgreed ends = co_await agree(of, 1);
    const std::string before = of.logs.read("keys");
    CHECK(before.find("LONGHAUL_UDP_SECRET") == std::string::npos);
    REQUIRE(packet_keys(of.far.shared, ends.far, Token{}, Side::acceptor).has_value());
    CHECK(of.logs.read("keys") == before);
    REQUIRE(packet_keys(of.near.shared, ends.near, Token{}, Side::dialler).has_value());
    const std::string after = of.logs.read("keys");
    CHECK(std::count(after.begin(), after.end(), '\n') == std::count(before.begin(), before.end(), '\n') + 2);
    CHECK(after.find("LONGHAUL_UDP_SECRET") != std::string::npos);
  }(sites));
}

TEST_CASE("a session has a block codec if both sides make blocks, and both check them with the same key") {
  KeyedSites sites;
  run(sites.io, [](KeyedSites& of) -> asio::awaitable<void> {
    const Buffer bytes(100, std::byte{'x'});
    std::vector<std::uint64_t> checksums;
    const auto make = [&](const config::Peer& peer, const TlsEngine&, const BlockChecksum& checksum) {
      CHECK(peer.name == "the peer");
      checksums.push_back(checksum.of(bytes));
      return std::make_unique<reduction::Reduction>(reduction::Options{
          .ring_bytes = 1 << 20, .peer_ring_bytes = 1 << 20, .epoch = 1, .checksum = checksum});
    };
    const config::Peer peer{.name = "the peer"};
    BothAgreed ends = co_await agree(of, 1);
    const auto none = make_codec(of.near.shared, peer, ends.near);
    REQUIRE(none.has_value());
    CHECK_FALSE(*none);  // this side makes none
    of.near.shared.make_codec = of.far.shared.make_codec = make;
    REQUIRE(make_codec(of.near.shared, peer, ends.near).value());
    REQUIRE(make_codec(of.far.shared, peer, ends.far).value());
    REQUIRE(checksums.size() == 2);
    CHECK(checksums[0] == checksums[1]);
    BothAgreed next = co_await agree(of, 1);
    REQUIRE(make_codec(of.near.shared, peer, next.near).value());
    CHECK(checksums[2] != checksums[0]);
    for (const std::uint64_t version : {std::uint64_t{0}, kBlockVersion - 1, kBlockVersion + 1}) {
      next.near.theirs.blocks = version;
      const auto made = make_codec(of.near.shared, peer, next.near);
      REQUIRE(made.has_value());
      CHECK_FALSE(*made);
    }
  }(sites));
}

}  // namespace longhaul::link
