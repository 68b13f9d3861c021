// SPDX-License-Identifier: Apache-2.0
// The TCP connections of a link: one, or two while one replaces the other; and the totals of all connections
// so far. The link decides when to close one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "proxy/link/io/tcp_carrier.h"
#include "proxy/link/status.h"

namespace longhaul::link {

class TcpCarriers {
 public:
  bool empty() const { return carriers_.empty(); }
  CarrierId newest() const { return empty() ? kNoCarrier : carriers_.back()->id(); }
  void add(std::unique_ptr<TcpCarrier> carrier);
  void kick() {
    if (!empty()) carriers_.back()->kick();
  }

  // Sends whole frames on the newest connection, even if it is not preferred.
  void send(Bytes frames) {
    if (!empty()) carriers_.back()->send(frames);
  }

  // Removes a connection that has failed. Returns false if it is not one of these.
  bool forget(CarrierId id, Session* session);
  // Removes all. `session`: the session from which they are detached, or null.
  void forget_all(Session* session);
  // Closes all, and sends the reason to the peer.
  void close_all(CloseCode code, const std::string& why, Session* session);

  void fill(LinkStatus& status) const;

 private:
  void count(const TcpCarrier& closed);

  std::vector<std::unique_ptr<TcpCarrier>> carriers_;  // the last one is the newest
  std::uint64_t attached_ = 0, closed_bytes_sent_ = 0, closed_bytes_received_ = 0;
};

}  // namespace longhaul::link
