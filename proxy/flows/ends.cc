// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/ends.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace longhaul::flows {
namespace asio = boost::asio;
namespace {

using AddressBytes = std::array<std::byte, 16>;

AddressBytes bytes_of(const asio::ip::address& address) {
  const auto bytes =
      (address.is_v4() ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()) : address.to_v6())
          .to_bytes();
  AddressBytes result;
  std::memcpy(result.data(), bytes.data(), result.size());
  return result;
}

// Of no host (RFC 6666).
constexpr std::byte kDiscardPrefix{0x01};

// Names are equal whatever their case.
AddressBytes bytes_of(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  const XXH64_hash_t digest = XXH3_64bits(name.data(), name.size());
  AddressBytes result{kDiscardPrefix};
  std::memcpy(result.data() + result.size() - sizeof digest, &digest, sizeof digest);
  return result;
}

}  // namespace

asio::ip::address address_in(const std::array<std::byte, 16>& bytes) {
  asio::ip::address_v6::bytes_type raw;
  std::memcpy(raw.data(), bytes.data(), raw.size());
  const asio::ip::address_v6 v6(raw);
  if (v6.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, v6);
  return v6;
}

std::string address_text(const std::array<std::byte, 16>& address) {
  constexpr AddressBytes kPrefix{kDiscardPrefix};
  if (std::equal(kPrefix.begin(), kPrefix.begin() + 8, address.begin())) return "a server by name";
  return address_in(address).to_string();
}

modules::Ends ends_of(const asio::ip::address& client, const Destination& server) {
  return {.client = bytes_of(client),
          .server = server.host.empty() ? bytes_of(server.address) : bytes_of(server.host),
          .server_port = server.port};
}

}  // namespace longhaul::flows
