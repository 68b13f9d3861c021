// SPDX-License-Identifier: Apache-2.0
// Takes the connections that peers dial, sees whose key they show, and hands them to that peer's link. A key
// that no peer has is refused and named in the log.
#pragma once
#include <memory>
#include <vector>

#include "proxy/link/peer_link.h"
#include "proxy/listeners/accept_loop.h"

namespace longhaul::link {

class LinkListener {
 public:
  // Throws listeners::ListenerError when the port cannot be had. `links` and `shared` outlive this object.
  LinkListener(LinkShared& shared, const config::HostPort& at, std::vector<std::unique_ptr<PeerLink>>& links,
               std::uint32_t max_handshakes);

 private:
  boost::asio::awaitable<void> take(boost::asio::ip::tcp::socket socket);

  LinkShared& shared_;
  std::vector<std::unique_ptr<PeerLink>>& links_;
  std::unique_ptr<listeners::AcceptLoop> loop_;
};

}  // namespace longhaul::link
