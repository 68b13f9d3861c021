// SPDX-License-Identifier: Apache-2.0
// Parses and compares flows named by their addresses. Names are compared as text: nothing is resolved here.
#include "proxy/flows/tuple.h"

#include "proxy/config/host_port.h"
#include "proxy/config/network.h"

namespace longhaul::flows {
namespace {

using boost::asio::ip::tcp;
using config::HostKind;
using config::TextError;

constexpr std::string_view kForm =
    "; write a flow as CLIENT:PORT-SERVER:PORT, "
    "for example 10.0.0.1:5000-10.0.2.2:445 or [fd00::1]:5000-[fd00::2]:445";

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

TextError not_an_end(std::string_view text, const TextError& why) {
  return {in_quotes(text) + " " + why.message + std::string(kForm)};
}

// An address without a port, with or without brackets.
std::optional<boost::asio::ip::address> parse_bare_address(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    const auto inner = text.substr(1, text.size() - 2);
    return inner.find(':') == std::string_view::npos ? std::nullopt : config::parse_address(inner);
  }
  return config::parse_address(text);
}

}  // namespace

config::TextResult<Tuple> parse_tuple(std::string_view text) {
  // The client's side contains no "-", because it is an address. The server's may, because it may be a name.
  const auto dash = text.find('-');
  if (dash == std::string_view::npos)
    return TextError{in_quotes(text) + " is not a flow" + std::string(kForm)};
  const auto client_text = text.substr(0, dash);
  const auto server_text = text.substr(dash + 1);

  Tuple tuple;
  if (const auto any_port = parse_bare_address(client_text)) {
    tuple.client = {*any_port, 0};
  } else {
    const auto client = config::parse_host_port(client_text, HostKind::address);
    if (client.has_error()) return not_an_end(client_text, client.error());
    tuple.client = {*config::parse_address(client->host), client->port};
  }
  const auto server = config::parse_host_port(server_text, HostKind::address_or_name);
  if (server.has_error()) return not_an_end(server_text, server.error());
  tuple.destination.port = server->port;
  if (const auto address = config::parse_address(server->host))
    tuple.destination.address = *address;
  else
    tuple.destination.host = server->host;
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
  if (config::unmapped(tuple.client.address()) != config::unmapped(client.address())) return false;
  return !destination.host.empty() ||
         config::unmapped(tuple.destination.address) == config::unmapped(destination.address);
}

}  // namespace longhaul::flows
