// SPDX-License-Identifier: Apache-2.0
// Where syslog messages go: "unix:/dev/log", or "udp:host:514".
#pragma once
#include <string>
#include <string_view>

#include "proxy/config/host_port.h"

namespace longhaul::config {

struct Syslog {
  std::string path;  // of a socket on this host; empty to send to `host` over UDP
  HostPort host;
  bool is_local() const { return !path.empty(); }
  std::string to_text() const;
  bool operator==(const Syslog&) const = default;
};

// The error is a clause, as that of parse_host_port.
TextResult<Syslog> parse_syslog(std::string_view text);

}  // namespace longhaul::config
