// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/link_listener.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "proxy/log/log.h"

namespace longhaul::link {
namespace asio = boost::asio;
using namespace std::chrono_literals;

LinkListener::LinkListener(LinkShared& shared, const config::HostPort& at,
                           std::vector<std::unique_ptr<PeerLink>>& links, std::uint32_t max_handshakes)
    : shared_(shared), links_(links) {
  auto acceptor = listeners::open_listener(shared.io, at, "[link] listen");
  set_link_buffers(acceptor.native_handle());
  const auto local = acceptor.local_endpoint();
  auto endpoint = udp::UdpEndpoint::open(shared.io, {local.address(), local.port()},
                                         udp::UdpEndpoint::Answers::from_address_used);
  if (!endpoint)
    throw listeners::ListenerError("[link] listen: UDP port " + std::to_string(local.port()) +
                                   " cannot be had: " + endpoint.error().message() + ".");
  shared.udp = std::move(*endpoint);
  loop_ = std::make_unique<listeners::AcceptLoop>(
      std::move(acceptor),
      [this](asio::ip::tcp::socket socket, asio::ip::tcp::endpoint) {
        asio::co_spawn(shared_.io, take(std::move(socket)), asio::detached);
      },
      [this, max_handshakes] { return shared_.handshakes < max_handshakes; });
}

asio::awaitable<void> LinkListener::take(asio::ip::tcp::socket socket) {
  LinkShared& shared = shared_;
  auto& links = links_;
  TlsConnection connection(std::move(socket), shared.tls, Side::acceptor);
  ++shared.handshakes;
  auto shaken = co_await connection.handshake(10s);
  --shared.handshakes;
  if (!shaken) {
    const std::string& text = connection.tls().error_text();
    log::warn("link_refused",
              {{"address", connection.remote()}, {"reason", text.empty() ? shaken.error().message() : text}});
    co_return;
  }
  const std::string& key = connection.tls().peer_fingerprint();
  for (auto& link : links) {
    if (link->peer().fingerprint != key) continue;
    co_await link->accept(std::move(connection));
    co_return;
  }
  log::warn("link_refused", {{"address", connection.remote()}, {"reason", "no [[peer]] has the key " + key}});
  connection.refuse(CloseCode::refused, "no peer here has your key " + key);
}

}  // namespace longhaul::link
