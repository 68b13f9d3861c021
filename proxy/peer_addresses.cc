// SPDX-License-Identifier: Apache-2.0
#include "proxy/peer_addresses.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "proxy/log/log.h"

namespace longhaul {

namespace ip = boost::asio::ip;

PeerAddresses::PeerAddresses(std::filesystem::path file) : file_(std::move(file)) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file_, error)) return;
  std::string text(kMostFileBytes, '\0');
  std::ifstream in(file_, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  std::istringstream lines(text);
  for (std::string peer, address; lines >> peer >> address;) {
    boost::system::error_code no_address;
    const auto parsed = ip::make_address(address, no_address);
    if (!no_address) last_[peer] = parsed;
  }
}

std::vector<ip::address> PeerAddresses::of(const std::vector<config::Peer>& peers) const {
  std::vector<ip::address> addresses;
  for (const config::Peer& peer : peers) {
    boost::system::error_code is_a_name;
    if (peer.address)
      if (const auto address = ip::make_address(peer.address->host, is_a_name); !is_a_name)
        addresses.push_back(address);
    if (const auto last = last_.find(peer.name); last != last_.end()) addresses.push_back(last->second);
  }
  return addresses;
}

void PeerAddresses::seen(const std::string& peer, const ip::address& address) {
  const auto [known, is_new] = last_.try_emplace(peer, address);
  if (!is_new && std::exchange(known->second, address) == address) return;
  save();
}

// Under another name first, so that a crash leaves the old file or the new one.
void PeerAddresses::save() {
  const auto draft = file_.string() + ".new";
  std::error_code error;
  {
    std::ofstream out(draft, std::ios::binary | std::ios::trunc);
    for (const auto& [peer, address] : last_) out << peer << ' ' << address.to_string() << '\n';
    out << std::flush;
    if (!out) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(draft, file_, error);
  if (!error || std::exchange(complained_, true)) return;
  log::warn("peer_addresses", {{"file", file_.string()},
                               {"reason", "cannot be written: " + error.message()},
                               {"effect", "after a restart no places are kept for peers that dial in"}});
}

}  // namespace longhaul
