// SPDX-License-Identifier: Apache-2.0
// Finds parts of a configuration that do not fit this host, or are probably not intended: addresses,
// networks, disk, memory. For `longhaul check`. intercept/host_checks.h checks the requirements of
// interception, process/confinement.h those of directories.
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
  std::vector<std::string> warnings;  // it would start, but probably not work as intended
};

struct HostFacts {
  std::vector<net::Interface> interfaces;
  std::vector<std::string>
      towards_peers;               // for each peer: the interface that leads to it; empty if unknown
  std::vector<std::optional<boost::asio::ip::address>> addresses_of_peers;  // the same; names are resolved
  std::vector<std::string> missing_targets;  // of exports and syslog: keys with unreachable targets
  bool binds_foreign = false;      // ip_nonlocal_bind
  std::uint64_t memory_bytes = 0;  // of the host; 0: unknown
  std::uint64_t disk_bytes = 0;    // for the dictionary, including its present data; 0: unknown
};

// Waits up to two seconds for the name of each peer, collector and syslog host.
HostFacts host_facts(const config::Config& config);

// Pure.
HostFindings host_findings(const config::Config& config, const HostFacts& host);

}  // namespace longhaul
