// SPDX-License-Identifier: Apache-2.0
// The address of an HTTP service: "http://host:port" or "https://host:port", optionally with the beginning of
// a path.
#pragma once
#include <string>
#include <string_view>

#include "proxy/config/host_port.h"

namespace longhaul::config {

struct HttpBase {
  HostPort at;
  std::string path;  // empty, or "/…" without a slash at its end
  bool tls = false;  // https
  std::string to_text() const;
  bool operator==(const HttpBase&) const = default;
};

// The error is a clause, as that of parse_host_port.
TextResult<HttpBase> parse_http_base(std::string_view text);

}  // namespace longhaul::config
