// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/link_carriers.h"

#include "proxy/link/io/agreed_keys.h"

namespace longhaul::link {

LinkCarriers::LinkCarriers(LinkShared& shared, const config::Peer& peer, SessionHost& host,
                           CarrierOwner& owner)
    : shared_(shared), peer_(peer), host_(host), owner_(owner), udp_(shared.io, peer.name, owner) {}

Result<void> LinkCarriers::begin_udp(Agreed& agreed) {
  if (!agreed.udp.endpoint) return {};
  const auto config = [&](const udp::CarrierKeys& keys, const UdpAddress& peer) {
    return udp::UdpCarrierConfig{
        .side = agreed.side, .keys = keys, .cipher = agreed.udp.cipher, .peer = peer, .new_carrier = [this] {
          return ++last_;
        }};
  };
  if (agreed.udp.paths.empty()) {
    const auto keys = packet_keys(shared_, agreed, host_.id(), host_.side());
    if (!keys) return keys.error();
    udp_.begin(*agreed.udp.endpoint, config(*keys, agreed.udp.peer), *host_.session());
    return {};
  }
  udp_.begin(*host_.session());
  for (const UdpTerms::Path& path : agreed.udp.paths) {
    if (!path.endpoint) continue;
    const auto keys = packet_keys(shared_, agreed, host_.id(), host_.side(), path.number);
    if (!keys) return keys.error();
    udp_.add(path.name, *path.endpoint, config(*keys, path.peer));
  }
  return {};
}

LinkCarriers::Attached LinkCarriers::attach(TlsConnection connection) {
  const CarrierId id = ++last_;
  const Duration rtt = connection.handshake_time();
  Session& session = *host_.session();
  auto carrier = std::make_unique<TcpCarrier>(id, std::move(connection), session, owner_, peer_.rate_bits,
                                              shared_.total_rate);
  session.attach(id, Clock::now(), rtt);
  carrier->start();
  close_connections(CloseCode::duplicate, "replaced by a newer connection");
  Attached attached{carrier->remote(), rtt};
  tcp_.add(std::move(carrier));
  return attached;
}

bool LinkCarriers::choose() {
  count_for_total_rate();
  if (!host_.session() || stopped_) return false;
  Session& session = *host_.session();
  const CarrierId before = session.preferred();
  udp_.choose({.features = config::meet(shared_.allowed, session.incoming().peer_allowed()),
               .tcp = tcp_.newest(),
               .rate_bits = peer_.rate_bits,
               .most_bits = shared_.total_rate.share(),
               .send_on_tcp = [this](Bytes frames) { tcp_.send(frames); },
               .lines = peer_.paths,
               .policy = peer_.policy},
              Clock::now());
  return session.preferred() != before;
}

void LinkCarriers::count_for_total_rate() {
  if (sends() == counted_) return;
  counted_ = !counted_;
  shared_.total_rate.links += counted_ ? 1 : -1;
}

void LinkCarriers::kick() {
  tcp_.kick();
  udp_.kick();
}

void LinkCarriers::stop(const std::string& why) {
  stopped_ = true;
  tcp_.close_all(CloseCode::shutting_down, why, nullptr);
}

void LinkCarriers::fill(LinkStatus& status) const {
  tcp_.fill(status);
  udp_.fill(status);
  status.bytes_sent += status.udp.bytes_sent;
  status.bytes_received += status.udp.bytes_received;
  if (!udp_.carrying()) return;
  status.carrier = "udp";
  status.remote_address = status.udp.remote_address;
  status.delivery_rate_bits = status.udp.delivery_rate_bits;
}

}  // namespace longhaul::link
