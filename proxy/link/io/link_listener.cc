// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/link_listener.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "proxy/link/io/handshake_gate.h"
#include "proxy/link/io/handshake_turns.h"
#include "proxy/link/io/refusal_log.h"

namespace longhaul::link {
namespace asio = boost::asio;

struct LinkListener::State {
  State(LinkShared& of, std::vector<std::unique_ptr<PeerLink>>& to, std::uint32_t max_handshakes)
      : shared(of), links(to), gate(max_handshakes), turns(of.io.get_executor()) {}

  LinkShared& shared;
  std::vector<std::unique_ptr<PeerLink>>& links;
  HandshakeGate gate;
  HandshakeTurns turns;
  RefusalLog refusals;

  PeerLink* link_of(const std::string& fingerprint) const {
    const auto found =
        std::ranges::find_if(links, [&](const auto& link) { return link->peer().has_key(fingerprint); });
    return found == links.end() ? nullptr : found->get();
  }
  std::optional<TlsEngine::KnownKey> find_key(const std::string& fingerprint) const {
    const PeerLink* link = link_of(fingerprint);
    return link ? link->find_key(fingerprint) : std::nullopt;
  }
};

LinkListener::LinkListener(LinkShared& shared, const config::HostPort& at,
                           std::vector<std::unique_ptr<PeerLink>>& links, std::uint32_t max_handshakes)
    : state_(std::make_shared<State>(shared, links, max_handshakes)) {
  auto acceptor = net::open_listener(shared.io, at, "[link] listen");
  set_link_buffers(acceptor.native_handle());
  const auto local = acceptor.local_endpoint();
  auto endpoint = udp::UdpEndpoint::open(shared.io, {local.address(), local.port()},
                                         udp::UdpEndpoint::Answers::from_address_used);
  if (!endpoint)
    throw net::ListenerError("[link] listen: UDP port " + std::to_string(local.port()) +
                             " cannot be opened: " + endpoint.error().message() + ".");
  shared.udp = std::move(*endpoint);
  loop_ = std::make_unique<net::AcceptLoop>(
      std::move(acceptor), [state = state_](asio::ip::tcp::socket socket, asio::ip::tcp::endpoint from) {
        asio::co_spawn(state->shared.io, take(state, std::move(socket), std::move(from)), asio::detached);
      });
}

void LinkListener::know(const std::vector<asio::ip::address>& peers) { state_->gate.know(peers); }
void LinkListener::set_max_handshakes(std::uint32_t max_handshakes) {
  state_->gate.set_places(max_handshakes);
}
const RefusalCounts& LinkListener::refused() const { return state_->refusals.counts(); }

asio::awaitable<void> LinkListener::take(std::shared_ptr<State> state, asio::ip::tcp::socket socket,
                                         asio::ip::tcp::endpoint from) {
  LinkShared& shared = state->shared;
  bool gave_up = false;
  std::optional<TlsConnection> connection;
  const auto place = state->gate.admit(from.address(), Clock::now(), [&] {
    gave_up = true;
    connection->cut();
  });
  if (!place) {
    state->refusals.refused(from, place.error(), "", Clock::now());
    boost::system::error_code ignored;
    socket.set_option(asio::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
    co_return;
  }
  connection.emplace(std::move(socket), shared.tls, Side::acceptor,
                     [state](const std::string& key) { return state->find_key(key); });
  const HandshakePace pace{state->turns, place->standing,
                           [&](Duration processor) { state->gate.charge(*place, processor, Clock::now()); }};
  ++shared.handshakes;
  auto shaken = co_await connection->handshake(kHandshakeLimit, &pace);
  --shared.handshakes;
  if (!gave_up) state->gate.leave(*place);
  const std::string& key = connection->tls().peer_fingerprint();
  if (!shaken) {
    Refusal refusal = connection->tls().refusal();
    std::string detail;
    if (gave_up)
      refusal = Refusal::no_place;
    else if (shaken.error() == asio::error::timed_out)
      refusal = Refusal::timed_out;
    else if (shaken.error().category() != boost::system::generic_category())  // of the socket, not of OpenSSL
      refusal = Refusal::ended;
    else
      detail = refusal == Refusal::unknown_key ? key : connection->tls().error_text();
    state->refusals.refused(from, refusal, detail, Clock::now());
    connection->end();
    co_return;
  }
  // The peer may have been removed from the configuration meanwhile.
  if (PeerLink* link = state->link_of(key)) co_return co_await link->accept(std::move(*connection));
  state->refusals.refused(from, Refusal::unknown_key, key, Clock::now());
  connection->refuse(CloseCode::refused, "this key is not in any [[peer]] here");
}

}  // namespace longhaul::link
