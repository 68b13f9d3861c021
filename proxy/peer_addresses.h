// SPDX-License-Identifier: Apache-2.0
// Stores the last address of each peer across restarts, so that the listener can reserve handshakes for peers
// that connect to this site. link/handshake_gate.h makes the reservations.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul {

class PeerAddresses {
 public:
  static constexpr std::size_t kMostFileBytes = 1 << 20;

  // A missing file and invalid lines are ignored.
  explicit PeerAddresses(std::filesystem::path file);

  // The configured addresses of these peers (names excluded) and their last ones.
  std::vector<boost::asio::ip::address> of(const std::vector<config::Peer>& peers) const;
  // A peer authenticated from this address. Writes the file if it is new.
  void seen(const std::string& peer, const boost::asio::ip::address& address);

 private:
  void save();

  std::filesystem::path file_;
  std::map<std::string, boost::asio::ip::address> last_;  // by the peer's name
  bool complained_ = false;
};

// The configured addresses of these peers, names excluded.
std::vector<boost::asio::ip::address> configured_addresses(const std::vector<config::Peer>& peers);

}  // namespace longhaul
