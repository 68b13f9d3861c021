// SPDX-License-Identifier: Apache-2.0
// Clients, with their servers here, of peers whose process may have ended: promises to such a client may be
// lost, and it may reconnect around its peer before that is known. The caller decides which peers are
// doubted. Ports are ignored: a server is the same on ports 445 and 139.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "proxy/link/io/peer_link.h"
#include "proxy/modules/module.h"

namespace longhaul::flows {

class Doubt {
 public:
  explicit Doubt(std::function<bool(const link::PeerLink&)> is_doubted)
      : is_doubted_(std::move(is_doubted)) {}

  // For each flow over the link whose module may have made promises. Each add() needs one remove().
  void add(const modules::Ends& ends, const link::PeerLink& link);
  void remove(const modules::Ends& ends, const link::PeerLink& link);

  bool about(const modules::Ends& ends) const;
  // All clients for which about() is true, without ports: at most `most`, shared fairly among the peers.
  std::vector<modules::Ends> all(std::size_t most) const;

 private:
  using Flows = std::map<modules::Ends, std::size_t>;  // number of flows
  std::function<bool(const link::PeerLink&)> is_doubted_;
  std::map<const link::PeerLink*, Flows> links_;
};

}  // namespace longhaul::flows
