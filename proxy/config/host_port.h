// SPDX-License-Identifier: Apache-2.0
// A host and a port in one text. Names are resolved when they are used to connect.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/config/text_error.h"

namespace longhaul::config {

// A host and port as typed. The host may be a name where HostKind allows it.
struct HostPort {
  std::string host;  // an address without brackets, or a name
  std::uint16_t port = 0;
  bool operator==(const HostPort&) const = default;
};

enum class HostKind { address, address_or_name };

// The error is a clause, such as "has no port; write ADDRESS:PORT".
// "10.1.1.1:80", "[::1]:80", "files.example:445". The port is 1 to 65535. An IPv4-mapped address becomes
// IPv4.
TextResult<HostPort> parse_host_port(std::string_view text, HostKind kind);
// With brackets if the host is an IPv6 address.
std::string to_text(const HostPort& host_port);

}  // namespace longhaul::config
