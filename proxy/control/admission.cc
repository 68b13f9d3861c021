// SPDX-License-Identifier: Apache-2.0
// Checks of the two headers that decide whether a request is accepted at all.
#include "proxy/control/admission.h"

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>
#include <charconv>

#include "proxy/control/token.h"

namespace longhaul::control {

bool host_is_ours(std::string_view host, const boost::asio::ip::tcp::endpoint& local) {
  constexpr std::uint16_t kHttpPort = 80;  // the port of a Host header without a port
  std::string_view name = host, port_text;
  if (host.starts_with('[')) {
    const auto close = host.find(']');
    if (close == std::string_view::npos) return false;
    name = host.substr(1, close - 1);
    port_text = host.substr(close + 1);
  } else if (const auto colon = host.find(':'); colon != std::string_view::npos) {
    name = host.substr(0, colon);
    port_text = host.substr(colon);
  }
  std::uint16_t port = kHttpPort;
  if (!port_text.empty()) {
    const auto* end = port_text.data() + port_text.size();
    const auto [read, error] = std::from_chars(port_text.data() + 1, end, port);
    if (port_text.front() != ':' || error != std::errc{} || read != end) return false;
  }
  if (port != local.port()) return false;
  if (boost::beast::iequals(name, "localhost")) return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(name, error);
  if (error || address.is_v6() != host.starts_with('[')) return false;
  return address.is_loopback() || address == local.address();
}

TokenCheck check_token(std::string_view authorization, std::string_view token) {
  if (authorization.empty()) return TokenCheck::missing;
  constexpr std::string_view scheme = "Bearer ";
  if (authorization.size() <= scheme.size() ||
      !boost::beast::iequals(authorization.substr(0, scheme.size()), scheme))
    return TokenCheck::wrong;
  return same_token(authorization.substr(scheme.size()), token) ? TokenCheck::right : TokenCheck::wrong;
}

}  // namespace longhaul::control
