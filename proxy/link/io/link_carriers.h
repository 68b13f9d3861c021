// SPDX-License-Identifier: Apache-2.0
// The carriers of one link's session: its TCP connections and its UDP paths, their ids, and which of them
// sends. The link decides when a connection is needed, and handles its end.
#pragma once
#include <string>

#include "proxy/link/io/link_shared.h"
#include "proxy/link/io/peer_dial.h"
#include "proxy/link/io/session_host.h"
#include "proxy/link/io/tcp_carriers.h"
#include "proxy/link/io/udp_paths.h"

namespace longhaul::link {

class LinkCarriers {
 public:
  // All references outlive this object; `peer` may change.
  LinkCarriers(LinkShared& shared, const config::Peer& peer, SessionHost& host, CarrierOwner& owner);

  // ---- New keys and a new connection, on which both sides have sent HELLO. The session exists.
  // Starts UDP, if both sides support it.
  Result<void> begin_udp(Agreed& agreed);
  struct Attached {
    std::string remote;
    Duration handshake_time{0};
  };
  // The newest connection is kept; data in flight on older ones is sent again.
  Attached attach(TlsConnection connection);

  // ---- The choice.
  // Moves the session to the best carrier. Returns true if the carrier has changed.
  bool choose();
  // Counts this link among those that share the total rate while one of its carriers sends.
  void count_for_total_rate();
  bool sends() const { return host_.session() && host_.session()->preferred() != kNoCarrier; }
  void kick();

  // ---- The end.
  // Removes a carrier that has failed. Returns false if it is not a TCP carrier of this link.
  bool forget(CarrierId id) { return tcp_.forget(id, host_.session()); }
  void forget_connections() { tcp_.forget_all(host_.session()); }
  void close_connections(CloseCode code, const std::string& why) {
    tcp_.close_all(code, why, host_.session());
  }
  // For the end of the daemon: no carrier is chosen from now on.
  void stop(const std::string& why);

  bool connected() const { return !tcp_.empty(); }
  udp::UdpPaths& udp() { return udp_; }
  const udp::UdpPaths& udp() const { return udp_; }
  void fill(LinkStatus& status) const;

 private:
  LinkShared& shared_;
  const config::Peer& peer_;
  SessionHost& host_;
  CarrierOwner& owner_;
  udp::UdpPaths udp_;
  TcpCarriers tcp_;
  CarrierId last_;
  bool counted_ = false;  // by count_for_total_rate()
  bool stopped_ = false;
};

}  // namespace longhaul::link
