// SPDX-License-Identifier: Apache-2.0
// Parts of a configuration that do not fit this host, or are probably not intended: addresses, networks,
// disk, memory. For `longhaul check`. Interception's own requirements are in intercept/host_checks.h, those
// of directories in process/confinement.h.
#pragma once
#include <cstdint>
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
  bool binds_foreign = false;      // ip_nonlocal_bind
  std::uint64_t memory_bytes = 0;  // of the host; 0: not known
  std::uint64_t disk_bytes = 0;    // of the file system of the dictionary; 0: not known
};

HostFacts host_facts(const config::Config& config);

// Pure.
HostFindings host_findings(const config::Config& config, const HostFacts& host);

}  // namespace longhaul
