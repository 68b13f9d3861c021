// SPDX-License-Identifier: Apache-2.0
// Which address a server sees as the client's. How the far side takes it on is the dialer's business.
#pragma once
#include <cstdint>

namespace longhaul::config {

enum class Source : std::uint8_t {
  automatic,  // the client's where its answers come back through this host, else the far proxy's
  client,
  proxy
};

}  // namespace longhaul::config
