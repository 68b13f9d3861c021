// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/ends.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace longhaul::flows {
namespace asio = boost::asio;
namespace {

using AddressBytes = modules::Address;

// Addresses of no host in 0100::/64 (RFC 6666), for servers by name. For a peer's clients, the peer's number
// precedes the second half.
constexpr std::byte kDiscardPrefix{0x01};
constexpr std::size_t kNumberAt = 4, kDigestAt = 8;

XXH64_hash_t digest_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

AddressBytes of_no_host(std::uint32_t number, XXH64_hash_t digest) {
  AddressBytes result{kDiscardPrefix};
  std::memcpy(result.data() + kNumberAt, &number, sizeof number);
  std::memcpy(result.data() + kDigestAt, &digest, sizeof digest);
  return result;
}

// Names are compared without case.
AddressBytes bytes_of(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  return of_no_host(0, digest_of(name));
}

bool is_no_host(const AddressBytes& address) {
  constexpr AddressBytes kPrefix{kDiscardPrefix};
  return std::equal(kPrefix.begin(), kPrefix.begin() + kNumberAt, address.begin());
}

}  // namespace

modules::Address bytes_of(const asio::ip::address& address) {
  const auto bytes =
      (address.is_v4() ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()) : address.to_v6())
          .to_bytes();
  modules::Address result;
  std::memcpy(result.data(), bytes.data(), result.size());
  return result;
}

std::uint32_t peer_number(const std::string& peer) { return static_cast<std::uint32_t>(digest_of(peer)) | 1; }

std::uint32_t peer_number_in(const std::array<std::byte, 16>& client) {
  std::uint32_t number = 0;
  if (is_no_host(client)) std::memcpy(&number, client.data() + kNumberAt, sizeof number);
  return number;
}

asio::ip::address address_in(const std::array<std::byte, 16>& bytes) {
  asio::ip::address_v6::bytes_type raw;
  std::memcpy(raw.data(), bytes.data(), raw.size());
  const asio::ip::address_v6 v6(raw);
  if (v6.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, v6);
  return v6;
}

std::string address_text(const std::array<std::byte, 16>& address) {
  if (is_no_host(address))
    return peer_number_in(address) ? "a client outside the networks of its peer" : "a server by name";
  return address_in(address).to_string();
}

modules::Ends ends_of(const asio::ip::address& client, const Destination& server) {
  return {.client = bytes_of(client),
          .server = server.host.empty() ? bytes_of(server.address) : bytes_of(server.host),
          .server_port = server.port};
}

modules::Ends ends_of_peers_client(const std::string& peer, const asio::ip::address& client,
                                   const Destination& server) {
  modules::Ends ends = ends_of(client, server);
  const std::string_view address(reinterpret_cast<const char*>(ends.client.data()), ends.client.size());
  ends.client = of_no_host(peer_number(peer), digest_of(address));
  return ends;
}

}  // namespace longhaul::flows
