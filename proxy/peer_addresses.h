// SPDX-License-Identifier: Apache-2.0
// Remembers from which address each peer was connected last, over restarts, so that the listener can keep
// places for the handshakes of peers that dial in. Leaves the keeping of places to link/handshake_gate.h.
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

  // A file that is not there, or lines of it that are no peer's name and address, count as nothing known.
  explicit PeerAddresses(std::filesystem::path file);

  // Where these peers are dialled, if that is written as an address, and where they were last.
  std::vector<boost::asio::ip::address> of(const std::vector<config::Peer>& peers) const;
  // A peer showed its key from there. Writes the file if that is news.
  void seen(const std::string& peer, const boost::asio::ip::address& address);

 private:
  void save();

  std::filesystem::path file_;
  std::map<std::string, boost::asio::ip::address> last_;  // by the peer's name
  bool complained_ = false;
};

}  // namespace longhaul
