// SPDX-License-Identifier: Apache-2.0
// Parts of a configuration that do not fit this host, or are probably not intended: addresses, networks,
// disk, memory. For `longhaul check`. Interception's own requirements are in intercept/host_checks.h, those
// of directories in process/confinement.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/net/interfaces.h"

namespace longhaul {

struct HostFindings {
  std::vector<std::string> errors;    // the daemon would not start
  std::vector<std::string> warnings;  // it would, and probably not do what was intended
};

struct HostFacts {
  std::vector<net::Interface> interfaces;
  std::vector<std::string>
      towards_peers;               // for each peer: the interface that leads to it; empty: not known
  std::vector<std::optional<boost::asio::ip::address>> addresses_of_peers;  // likewise; names are resolved
  std::vector<std::string> missing_targets;  // of exports and syslog: keys with values that lead nowhere now
  bool binds_foreign = false;      // ip_nonlocal_bind
  std::uint64_t memory_bytes = 0;  // of the host; 0: not known
  std::uint64_t disk_bytes = 0;    // for the dictionary, with what it has already; 0: not known
};

// Waits up to two seconds for the name of each peer, collector and syslog host.
HostFacts host_facts(const config::Config& config);

// Pure.
HostFindings host_findings(const config::Config& config, const HostFacts& host);

}  // namespace longhaul
