// SPDX-License-Identifier: Apache-2.0
// The address that a server sees as the client's. The dialer binds it.
#pragma once
#include <cstdint>

namespace longhaul::config {

enum class Source : std::uint8_t {
  automatic,  // the client's if its answers return through this host, else the far proxy's
  client,
  proxy
};

}  // namespace longhaul::config
