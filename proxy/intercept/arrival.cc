// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/arrival.h"

#include <algorithm>

#include "proxy/flows/allow.h"

namespace longhaul::intercept {
namespace {

bool is_in(const std::vector<boost::asio::ip::address>& all, const boost::asio::ip::address& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::optional<NotTaken> why_not_taken(const Arrival& arrival, const boost::asio::ip::address& client,
                                      const std::optional<boost::asio::ip::address>& server) {
  if (!arrival.is_up)
    return NotTaken{"Interception is down" + (arrival.error.empty() ? "" : " (" + arrival.error + ")") +
                        ", so the connection would bypass this proxy.",
                    "run longhaul intercept up"};
  const auto from = config::unmapped(client);
  if (net::interface_with(arrival.own, from) != nullptr)
    return NotTaken{"The client is this host, and connections of this host's own programs are not intercepted.",
                    "use a [[forward]] or [socks] listener for them"};
  if (is_in(arrival.peers, from))
    return NotTaken{"The client is a peer, and packets of peers are never intercepted.", "none needed"};
  if (server) {
    const auto to = config::unmapped(*server);
    if (const net::Interface* own = net::interface_with(arrival.own, to))
      return NotTaken{"The destination is this host (" + own->name +
                          "), and connections to this host are not intercepted.",
                      "name the server's own address"};
    if (is_in(arrival.peers, to))
      return NotTaken{"The destination is a peer's address, and packets to peers are never intercepted.",
                      "none needed"};
    if (flows::never_dialled(to))
      return NotTaken{"The destination is not the address of a single host.", "name the server's address"};
  }
  if (arrival.client_interface.empty())
    return NotTaken{"This host has no route to the client, so it cannot answer the client.",
                    "ip route get " + from.to_string()};
  const auto& taken = arrival.interfaces;
  if (std::find(taken.begin(), taken.end(), arrival.client_interface) == taken.end())
    return NotTaken{"The route to the client leads through " + arrival.client_interface +
                        ", which [intercept] interfaces (" + listed(taken) +
                        ") does not name, so the connection would bypass this proxy.",
                    "name the interface towards the client in [intercept] interfaces and restart the daemon"};
  return std::nullopt;
}

}  // namespace longhaul::intercept
