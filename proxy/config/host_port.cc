// SPDX-License-Identifier: Apache-2.0
// Splits "host:port" without guessing; the caller adds the rest of the sentence.
#include "proxy/config/host_port.h"

#include <algorithm>
#include <charconv>

#include "proxy/config/network.h"

namespace longhaul::config {
namespace {

// RFC 1123 section 2.1 and the underscore that real networks use; a name of digits and dots is a mistyped
// address.
bool is_name(std::string_view host) {
  if (host.empty() || host.size() > 253) return false;
  std::size_t label = 0;
  bool letter = false;
  for (char c : host) {
    const bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    letter = letter || alpha;
    if (c == '.') {
      if (label == 0) return false;
      label = 0;
    } else if (alpha || digit || c == '_' || (c == '-' && label > 0)) {
      if (++label > 63) return false;
    } else {
      return false;
    }
  }
  return letter;
}

}  // namespace

TextResult<HostPort> parse_host_port(std::string_view text, HostKind kind) {
  const auto colon = text.rfind(':');
  const bool bracket = text.starts_with('[');
  if (parse_address(text)) {
    if (colon == std::string_view::npos)
      return TextError{"has no port; write " + std::string(text) + ":PORT"};
    return TextError{"has no port, or an IPv6 address without brackets; write [ADDRESS]:PORT"};
  }
  if (colon == std::string_view::npos || (bracket && text.ends_with(']')))
    return TextError{"has no port; write ADDRESS:PORT"};
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.empty()) return TextError{"has no address; write 0.0.0.0:PORT or [::]:PORT for all addresses"};
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || port == 0)
    return TextError{"has no port from 1 to 65535 after the last colon"};
  if (bracket) {
    if (!host.ends_with(']')) return TextError{"has an opening bracket without a closing one"};
    host = host.substr(1, host.size() - 2);
    const auto address = parse_address(host);
    if (!address || host.find(':') == std::string_view::npos)
      return TextError{"has no IPv6 address between its brackets"};
    return HostPort{address->to_string(), port};
  }
  if (const auto address = parse_address(host)) {
    if (host.find(':') != std::string_view::npos)
      return TextError{"has an IPv6 address without brackets; write [" + std::string(host) +
                       "]:" + std::string(digits)};
    return HostPort{address->to_string(), port};
  }
  if (kind == HostKind::address) return TextError{"has no IPv4 or IPv6 address before its port"};
  if (!is_name(host)) return TextError{"has neither an address nor a name before its port"};
  return HostPort{std::string(host), port};
}

std::string to_text(const HostPort& host_port) {
  const bool v6 = host_port.host.find(':') != std::string::npos;
  return (v6 ? "[" + host_port.host + "]" : host_port.host) + ":" + std::to_string(host_port.port);
}

}  // namespace longhaul::config
