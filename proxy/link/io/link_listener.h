// SPDX-License-Identifier: Apache-2.0
// Accepts connections of peers, authenticates their keys, and passes each to the peer's link. All others are
// refused early, counted and logged (README.md).
#pragma once
#include <memory>
#include <vector>

#include "proxy/link/io/peer_link.h"
#include "proxy/link/io/refusal.h"
#include "proxy/net/accept_loop.h"

namespace longhaul::link {

class LinkListener {
 public:
  // From the connection to the end of the handshake: enough for two round trips and one retransmission.
  static constexpr Duration kHandshakeLimit = std::chrono::seconds(3);

  // Throws net::ListenerError if the port is not available. `links` and `shared` outlive this object.
  LinkListener(LinkShared& shared, const config::HostPort& at, std::vector<std::unique_ptr<PeerLink>>& links,
               std::uint32_t max_handshakes);

  // Sets the current and last known addresses of peers: places are reserved for their handshakes.
  void know(const std::vector<boost::asio::ip::address>& peers);
  void set_max_handshakes(std::uint32_t max_handshakes);
  const RefusalCounts& refused() const;

 private:
  struct State;
  static boost::asio::awaitable<void> take(std::shared_ptr<State> state, boost::asio::ip::tcp::socket socket,
                                           boost::asio::ip::tcp::endpoint from);

  std::shared_ptr<State> state_;  // shared with the handshakes in progress
  std::unique_ptr<net::AcceptLoop> loop_;
};

}  // namespace longhaul::link
