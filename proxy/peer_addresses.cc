// SPDX-License-Identifier: Apache-2.0
#include "proxy/peer_addresses.h"

#include <sstream>
#include <utility>

#include "proxy/log/log.h"
#include "proxy/process/private_file.h"

namespace longhaul {

namespace ip = boost::asio::ip;

PeerAddresses::PeerAddresses(std::filesystem::path file) : file_(std::move(file)) {
  const auto read = process::read_private_file(file_, kMostFileBytes);
  if (!read) return;
  std::istringstream lines(read->text);
  for (std::string peer, address; lines >> peer >> address;) {
    boost::system::error_code no_address;
    const auto parsed = ip::make_address(address, no_address);
    if (!no_address) last_[peer] = parsed;
  }
}

std::vector<ip::address> configured_addresses(const std::vector<config::Peer>& peers) {
  std::vector<ip::address> addresses;
  for (const config::Peer& peer : peers) {
    boost::system::error_code is_a_name;
    for (const config::HostPort& at : peer.addresses()) {
      const auto address = ip::make_address(at.host, is_a_name);
      if (!is_a_name) addresses.push_back(address);
    }
  }
  return addresses;
}

std::vector<ip::address> PeerAddresses::of(const std::vector<config::Peer>& peers) const {
  std::vector<ip::address> addresses;
  for (const config::Peer& peer : peers) {
    boost::system::error_code is_a_name;
    for (const config::HostPort& at : peer.addresses())
      if (const auto address = ip::make_address(at.host, is_a_name); !is_a_name) addresses.push_back(address);
    if (const auto last = last_.find(peer.name); last != last_.end()) addresses.push_back(last->second);
  }
  return addresses;
}

void PeerAddresses::seen(const std::string& peer, const ip::address& address) {
  const auto [known, is_new] = last_.try_emplace(peer, address);
  if (!is_new && std::exchange(known->second, address) == address) return;
  save();
}

void PeerAddresses::save() {
  std::string text;
  for (const auto& [peer, address] : last_) text += peer + ' ' + address.to_string() + '\n';
  const auto replaced = process::replace_private_file(file_, text);
  if (replaced || std::exchange(complained_, true)) return;
  log::warn(
      "peer_addresses",
      {{"file", file_.string()},
       {"reason", "cannot be written: " + process::reason_of(replaced.error())},
       {"effect", "after a restart, no handshakes are reserved for known peers that connect to this site"}});
}

}  // namespace longhaul
