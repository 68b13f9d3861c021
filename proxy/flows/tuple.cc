// SPDX-License-Identifier: Apache-2.0
// Reads and compares flows named by their ends. Names are taken as they are: nothing is resolved here.
#include "proxy/flows/tuple.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <optional>

namespace longhaul::flows {
namespace {

using boost::asio::ip::address;
using boost::asio::ip::make_address_v4;
using boost::asio::ip::tcp;

constexpr std::size_t kMostNameCharacters = 253;  // RFC 1035, section 2.3.4, without the root dot

address unmapped(const address& from) {
  return from.is_v6() && from.to_v6().is_v4_mapped()
             ? address{make_address_v4(boost::asio::ip::v4_mapped, from.to_v6())}
             : from;
}

std::optional<address> parse_address(std::string_view text) {
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(text, error);
  if (error) return std::nullopt;
  return unmapped(parsed);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostNameCharacters && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

struct HostAndPort {
  std::string_view host;
  std::string_view port;  // empty: none was typed
  bool bracketed = false;
};

std::optional<HostAndPort> split(std::string_view text) {
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    HostAndPort parts{text.substr(1, close - 1), {}, true};
    const auto rest = text.substr(close + 1);
    if (rest.empty()) return parts;
    if (!rest.starts_with(':') || rest.size() == 1) return std::nullopt;
    parts.port = rest.substr(1);
    return parts;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find(':') != colon) return HostAndPort{text, {}};  // bare IPv6
  if (colon + 1 == text.size()) return std::nullopt;
  return HostAndPort{text.substr(0, colon), text.substr(colon + 1)};
}

constexpr std::string_view kForm =
    "; a flow is named by its number or by its ends, CLIENT:PORT-SERVER:PORT, "
    "for example 10.0.0.1:5000-10.0.2.2:445 or [fd00::1]:5000-[fd00::2]:445";

TupleError not_a(std::string_view what, std::string_view text) {
  return {"\"" + std::string(text) + "\" is not " + std::string(what) + std::string(kForm)};
}

}  // namespace

boost::system::result<Tuple, TupleError> parse_tuple(std::string_view text) {
  // The client's side holds no "-" of its own: it is an address. The server's may, it may be a name.
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return not_a("a flow", text);
  const auto client_text = text.substr(0, dash);
  const auto server_text = text.substr(dash + 1);

  Tuple tuple;
  const auto client = split(client_text);
  const auto client_address = client ? parse_address(client->host) : std::nullopt;
  if (!client_address ||
      (client->bracketed && client_address->is_v4() && client->host.find(':') == std::string_view::npos))
    return not_a("a client's address", client_text);
  std::uint16_t client_port = 0;
  if (!client->port.empty()) {
    const auto port = parse_port(client->port);
    if (!port) return not_a("a port", client->port);
    client_port = *port;
  }
  tuple.client = {*client_address, client_port};

  const auto server = split(server_text);
  if (!server) return not_a("a server's address and port", server_text);
  const auto port = parse_port(server->port);
  if (!port) return not_a("a server's address and port", server_text);
  tuple.destination.port = *port;
  if (const auto server_address = parse_address(server->host))
    tuple.destination.address = *server_address;
  else if (!server->bracketed && is_name(server->host))
    tuple.destination.host = server->host;
  else
    return not_a("a server's address and port", server_text);
  return tuple;
}

std::string to_text(const Tuple& tuple) {
  const Destination client{{}, tuple.client.address(), tuple.client.port()};
  auto text = client.to_text();
  if (tuple.client.port() == 0) text.erase(text.size() - 2);
  return text + "-" + tuple.destination.to_text();
}

bool matches(const Tuple& tuple, const tcp::endpoint& client, const Destination& destination) {
  if (tuple.client.port() != 0 && tuple.client.port() != client.port()) return false;
  if (tuple.destination.port != destination.port || tuple.destination.host != destination.host) return false;
  if (unmapped(tuple.client.address()) != unmapped(client.address())) return false;
  return !destination.host.empty() || unmapped(tuple.destination.address) == unmapped(destination.address);
}

}  // namespace longhaul::flows
