// SPDX-License-Identifier: Apache-2.0
#include "proxy/peer_addresses.h"

#include <catch2/catch.hpp>

#include "temporary_folder.h"

namespace longhaul {
namespace {

using boost::asio::ip::make_address;
using Addresses = std::vector<boost::asio::ip::address>;

config::Peer peer_at(const std::string& name, std::optional<config::HostPort> address = {}) {
  config::Peer peer;
  peer.name = name;
  peer.address = std::move(address);
  return peer;
}

TEST_CASE("the last address of a peer is known after a restart") {
  const TemporaryFolder folder;
  const std::vector<config::Peer> peers{peer_at("a"), peer_at("b", config::HostPort{"192.0.2.7", 7600}),
                                        peer_at("c", config::HostPort{"c.example", 7600})};
  {
    PeerAddresses addresses(folder.path() / "peer-addresses");
    CHECK(addresses.of(peers) == Addresses{make_address("192.0.2.7")});
    addresses.seen("a", make_address("10.0.0.1"));
    addresses.seen("a", make_address("10.0.0.2"));
    addresses.seen("c", make_address("2001:db8::1"));
    addresses.seen("gone", make_address("10.0.0.9"));
  }
  const PeerAddresses again(folder.path() / "peer-addresses");
  CHECK(again.of(peers) ==
        Addresses{make_address("10.0.0.2"), make_address("192.0.2.7"), make_address("2001:db8::1")});
}

TEST_CASE("configured addresses contain neither names nor peers that dial in") {
  const std::vector<config::Peer> peers{peer_at("a"), peer_at("b", config::HostPort{"192.0.2.7", 7600}),
                                        peer_at("c", config::HostPort{"c.example", 7600}),
                                        peer_at("d", config::HostPort{"2001:db8::7", 7600})};
  CHECK(configured_addresses(peers) == Addresses{make_address("192.0.2.7"), make_address("2001:db8::7")});
}

TEST_CASE("a damaged or unwritable file of addresses only loses the addresses") {
  const TemporaryFolder folder;
  folder.write("peer-addresses", "a 10.0.0.1\nb nonsense\nc\n");
  PeerAddresses addresses(folder.path() / "peer-addresses");
  CHECK(addresses.of({peer_at("a"), peer_at("b"), peer_at("c")}) == Addresses{make_address("10.0.0.1")});
  PeerAddresses nowhere(folder.path() / "none" / "peer-addresses");
  nowhere.seen("a", make_address("10.0.0.1"));
  CHECK(nowhere.of({peer_at("a")}) == Addresses{make_address("10.0.0.1")});
}

}  // namespace
}  // namespace longhaul
