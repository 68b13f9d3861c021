// SPDX-License-Identifier: Apache-2.0
// The TCP connections of a link: one, or two while one replaces the other; and what all that there were have
// carried. The link decides when one is closed.
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

  // Whole frames, on the newest, which need not be preferred.
  void send(Bytes frames) {
    if (!empty()) carriers_.back()->send(frames);
  }

  // One that has failed by itself. False: it is not one of these.
  bool forget(CarrierId id, Session* session);
  // All. `session`: from which they are detached; null: there is none.
  void forget_all(Session* session);
  // Closed properly, if the other end should learn the reason.
  void close_all(CloseCode code, const std::string& why, Session* session);

  void fill(LinkStatus& status) const;

 private:
  void count(const TcpCarrier& closed);

  std::vector<std::unique_ptr<TcpCarrier>> carriers_;  // the last one is the newest
  std::uint64_t attached_ = 0, closed_bytes_sent_ = 0, closed_bytes_received_ = 0;
};

}  // namespace longhaul::link
