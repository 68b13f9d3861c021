// SPDX-License-Identifier: Apache-2.0
#include "proxy/host_findings.h"

#include <netdb.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <fstream>
#include <memory>

#include "proxy/config/units.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
namespace ip = boost::asio::ip;

// The disk space for the dictionary: free space plus its present data; 0 if unknown.
std::uint64_t room_for(const fs::path& folder) {
  std::error_code error;
  fs::path path = folder;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  struct statvfs about {};
  if (::statvfs(path.c_str(), &about) != 0) return 0;
  std::uint64_t bytes = std::uint64_t{about.f_bavail} * about.f_frsize;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (const auto size = at->file_size(gone); !gone) bytes += size;
  }
  return bytes;
}

// Resolves a name within two seconds, because a person waits for `check`. Returns nullopt if it is not
// resolved by then.
std::optional<ip::address> address_of(const std::string& host) {
  if (auto address = config::parse_address(host)) return address;
  // glibc may write to it after the two seconds.
  struct Question {
    std::string name;
    gaicb asked{};
  };
  auto question = std::make_unique<Question>(Question{.name = host});
  question->asked.ar_name = question->name.c_str();
  std::array<gaicb*, 1> list{&question->asked};
  if (::getaddrinfo_a(GAI_NOWAIT, list.data(), 1, nullptr) != 0) return std::nullopt;
  const timespec patience{.tv_sec = 2, .tv_nsec = 0};
  (void)::gai_suspend(list.data(), 1, &patience);
  if (::gai_error(&question->asked) == EAI_INPROGRESS && ::gai_cancel(&question->asked) != EAI_CANCELED) {
    (void)question.release();
    return std::nullopt;
  }
  std::optional<ip::address> found;
  if (const addrinfo* first = question->asked.ar_result) {
    ip::tcp::endpoint at;
    if (first->ai_addrlen <= at.capacity()) {
      std::memcpy(at.data(), first->ai_addr, first->ai_addrlen);
      found = at.address();
    }
    ::freeaddrinfo(question->asked.ar_result);
  }
  return found;
}

void look_at_listens(const config::Config& config, const HostFacts& host, HostFindings& found) {
  const auto look = [&](const config::HostPort& at, const std::string& entry) {
    const auto address = config::parse_address(at.host);
    if (!address || address->is_unspecified() || address->is_loopback() || host.binds_foreign) return;
    if (net::interface_with(host.interfaces, *address) == nullptr)
      found.errors.push_back(entry + " = \"" + to_text(at) +
                             "\": no interface of this host has the address " + at.host +
                             ". Remedy: use one of this host's (ip -brief address), or [::] for all.");
  };
  if (config.link.listen) look(*config.link.listen, "[link] listen");
  if (config.socks.listen) look(*config.socks.listen, "[socks] listen");
  for (const config::Forward& forward : config.forwards) look(forward.listen, "[[forward]] listen");
  if (config.control.tls_listen) look(*config.control.tls_listen, "[control] tls_listen");
}

// A directly connected network of this host takes precedence over the peer's network: it needs no link.
void look_at_networks(const config::Peer& peer, const HostFacts& host, HostFindings& found) {
  for (const config::Network& network : peer.networks)
    for (const net::Interface& each : host.interfaces)
      for (const config::Network& own : each.networks)
        if (own.prefix_length <= network.prefix_length && config::contains(own, network.address)) {
          found.warnings.push_back("The network " + to_text(network) + " of the peer \"" + peer.name +
                                   "\" is part of " + to_text(own) +
                                   ", which is connected to this host's interface " + each.name +
                                   ", so flows to it never use the link. The key networks is for the "
                                   "networks of the peer's site.");
          return;
        }
}

// With one peer, no third site could be reached through this one.
void look_at_allow(const config::Config& config, HostFindings& found) {
  if (config.peers.size() != 1) return;
  const config::Peer& peer = config.peers.front();
  for (const config::Network& network : peer.networks)
    if (std::ranges::find(config.link.allow, network) != config.link.allow.end())
      found.warnings.push_back("The network " + to_text(network) +
                               " is in [link] allow, which lists the networks that the "
                               "peer may reach at this site, and in networks of the peer \"" +
                               peer.name + "\", which lists the networks of the peer's site.");
}

// Without its local address or interface, nothing can be sent on a path.
void look_at_paths(const config::Peer& peer, const HostFacts& host, HostFindings& found) {
  for (const config::PeerPath& path : peer.paths) {
    if (path.local.empty()) continue;
    const auto address = config::parse_address(path.local);
    const bool is_here =
        address ? net::interface_with(host.interfaces, *address) != nullptr
                : std::any_of(host.interfaces.begin(), host.interfaces.end(),
                              [&](const net::Interface& each) { return each.name == path.local; });
    if (!is_here)
      found.warnings.push_back("The path \"" + path.name + "\" of the peer \"" + peer.name +
                               "\" has local = \"" + path.local + "\", which is not an " +
                               (address ? "address" : "interface") +
                               " of this host: the path will not work.");
  }
}

void look_at_peers(const config::Config& config, const HostFacts& host, HostFindings& found) {
  for (std::size_t i = 0; i < config.peers.size(); ++i) {
    const config::Peer& peer = config.peers[i];
    look_at_networks(peer, host, found);
    look_at_paths(peer, host, found);
    const auto& address = host.addresses_of_peers[i];
    const net::Interface* const own = address ? net::interface_with(host.interfaces, *address) : nullptr;
    if (own != nullptr) {
      found.warnings.push_back("The address " + peer.address->host + " of the peer \"" + peer.name +
                               "\" is this host's own (" + own->name + "); the peer's address is needed.");
      continue;
    }
    const std::string& way = host.towards_peers[i];
    const auto& taken = config.intercept.interfaces;
    if (config.intercept.mode == config::Intercept::Mode::tproxy &&
        std::find(taken.begin(), taken.end(), way) != taken.end())
      found.warnings.push_back(
          "The route to the peer \"" + peer.name + "\" leads through " + way +
          ", which [intercept] interfaces names; that list is for the interfaces towards the clients, "
          "not the WAN. Ignore this if the host has only one interface (one-armed).");
  }
}

void look_at_room(const config::Config& config, const HostFacts& host, HostFindings& found) {
  if (host.memory_bytes != 0 && config.limits.memory_bytes > host.memory_bytes)
    found.warnings.push_back(
        "[limits] memory is " + config::size_to_text(config.limits.memory_bytes) +
        ", but this host has only " + config::size_to_text(host.memory_bytes >> 20 << 20) +
        ": the kernel would kill the daemon (out of memory) before the limit is reached.");
  if (!config.peers.empty() && host.disk_bytes != 0 && config.dictionary.disk_bytes > host.disk_bytes)
    found.warnings.push_back("[dictionary] disk is " + config::size_to_text(config.dictionary.disk_bytes) +
                             ", but the file system of " +
                             (config.state_dir / config.dictionary.directory).string() + " has only " +
                             config::size_to_text(host.disk_bytes >> 20 << 20) +
                             " free: the dictionary would fill it.");
}

// The targets of flow records, metrics and the log that cannot be reached now.
std::vector<std::string> missing_targets(const config::Config& config) {
  std::vector<std::string> missing;
  const auto look_up = [&](const std::string& key, const std::string& name) {
    if (!address_of(name)) missing.push_back(key + ": the name " + name + " cannot be resolved");
  };
  if (config.exports.ipfix) look_up("[export] ipfix", config.exports.ipfix->host);
  if (config.exports.otlp) look_up("[export] otlp", config.exports.otlp->at.host);
  if (const auto& syslog = config.log.syslog) {
    std::error_code error;
    if (!syslog->is_local())
      look_up("[log] syslog", syslog->host.host);
    else if (!fs::is_socket(syslog->path, error))
      missing.push_back("[log] syslog: there is no socket " + syslog->path);
  }
  return missing;
}

}  // namespace

HostFacts host_facts(const config::Config& config) {
  HostFacts host{.interfaces = net::interfaces()};
  host.missing_targets = missing_targets(config);
  for (const config::Peer& peer : config.peers) {
    const auto address = peer.address ? address_of(peer.address->host) : std::nullopt;
    host.addresses_of_peers.push_back(address);
    // If a peer connects to this site, use the route to its networks.
    const auto towards = address || peer.address || peer.networks.empty() ? address : peer.networks.front().address;
    const auto source = towards ? net::source_towards(*towards) : std::nullopt;
    const net::Interface* way = source ? net::interface_with(host.interfaces, *source) : nullptr;
    host.towards_peers.push_back(way != nullptr ? way->name : "");
  }
  std::string setting;
  std::ifstream("/proc/sys/net/ipv4/ip_nonlocal_bind") >> setting;
  host.binds_foreign = setting == "1";
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0)
    host.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  host.disk_bytes = room_for(config.state_dir / config.dictionary.directory);
  return host;
}

HostFindings host_findings(const config::Config& config, const HostFacts& host) {
  HostFindings found;
  look_at_listens(config, host, found);
  look_at_peers(config, host, found);
  look_at_allow(config, found);
  look_at_room(config, host, found);
  for (const std::string& missing : host.missing_targets)
    found.warnings.push_back(missing + ". Nothing is sent there until that changes.");
  return found;
}

}  // namespace longhaul
