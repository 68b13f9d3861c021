// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/syslog.h"

namespace longhaul::config {

TextResult<Syslog> parse_syslog(std::string_view text) {
  constexpr std::size_t kMostPath = 107;  // sockaddr_un
  if (text == "true") return Syslog{"/dev/log", {}};
  if (text.starts_with("unix:")) {
    const auto path = text.substr(5);
    if (!path.starts_with('/') || path.size() > kMostPath || path.find('\0') != path.npos)
      return TextError{"has no absolute path of at most 107 bytes after unix:"};
    return Syslog{std::string(path), {}};
  }
  if (text.starts_with("udp:")) {
    const auto host = parse_host_port(text.substr(4), HostKind::address_or_name);
    if (!host) return host.error();
    return Syslog{{}, *host};
  }
  return TextError{"must be true, \"unix:/dev/log\" or \"udp:HOST:514\""};
}

std::string Syslog::to_text() const { return is_local() ? "unix:" + path : "udp:" + config::to_text(host); }

}  // namespace longhaul::config
