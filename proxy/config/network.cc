// SPDX-License-Identifier: Apache-2.0
// Prefix arithmetic on the bytes of an address; names and scopes are resolved elsewhere.
#include "proxy/config/network.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace longhaul::config {
namespace {

namespace ip = boost::asio::ip;
constexpr unsigned kMappedPrefix = 96;  // ::ffff:0:0/96, RFC 4291 section 2.5.5.2

struct Raw {
  std::array<std::uint8_t, 16> bytes{};
  unsigned bits = 0;
};

Raw raw(const ip::address& address) {
  Raw raw;
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    std::copy(bytes.begin(), bytes.end(), raw.bytes.begin());
    raw.bits = 32;
  } else {
    const auto bytes = address.to_v6().to_bytes();
    std::copy(bytes.begin(), bytes.end(), raw.bytes.begin());
    raw.bits = 128;
  }
  return raw;
}

ip::address cut(const ip::address& address, unsigned prefix_length) {
  Raw bytes = raw(address);
  for (unsigned i = 0; i < bytes.bits / 8; ++i) {
    const unsigned kept = prefix_length <= i * 8 ? 0 : std::min(8u, prefix_length - i * 8);
    bytes.bytes[i] = static_cast<std::uint8_t>(bytes.bytes[i] & (0xff00u >> kept));
  }
  if (bytes.bits == 32)
    return ip::address_v4({bytes.bytes[0], bytes.bytes[1], bytes.bytes[2], bytes.bytes[3]});
  return ip::address_v6(bytes.bytes);
}

// Splits the text; the bits after the prefix may still be set.
std::optional<Network> split(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) return std::nullopt;
  const unsigned bits = address->is_v4() ? 32 : 128;
  // A mapped address has already become IPv4; its prefix length still counts from the start of the IPv6 form.
  const unsigned unwrapped = address->is_v4() && text.find(':') != std::string_view::npos ? kMappedPrefix : 0;
  if (slash == std::string_view::npos) return Network{*address, bits};
  const std::string_view digits = text.substr(slash + 1);
  unsigned length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (length < unwrapped || length - unwrapped > bits) return std::nullopt;
  return Network{*address, length - unwrapped};
}

}  // namespace

ip::address unmapped(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  return address;
}

std::optional<ip::address> parse_address(std::string_view text) {
  // A scope names an interface of this host; no key of a configuration is limited to one link.
  if (text.find('%') != std::string_view::npos) return std::nullopt;
  boost::system::error_code error;
  const auto address = ip::make_address(text, error);
  if (error) return std::nullopt;
  return unmapped(address);
}

std::optional<Network> parse_network(std::string_view text) {
  const auto network = split(text);
  if (!network || cut(network->address, network->prefix_length) != network->address) return std::nullopt;
  return network;
}

std::optional<Network> parse_network_loosely(std::string_view text) {
  const auto network = split(text);
  if (!network) return std::nullopt;
  return network_of(network->address, network->prefix_length);
}

Network network_of(const ip::address& address, unsigned prefix_length) {
  return {cut(address, prefix_length), prefix_length};
}

std::string to_text(const Network& network) {
  return network.address.to_string() + "/" + std::to_string(network.prefix_length);
}

bool contains(const Network& network, const ip::address& address) {
  const ip::address plain = unmapped(address);
  if (plain.is_v4() != network.address.is_v4()) return false;
  return cut(plain, network.prefix_length) == network.address;
}

}  // namespace longhaul::config
