// SPDX-License-Identifier: Apache-2.0
// The source address that a server sees. The dialer binds it.
#pragma once
#include <cstdint>

namespace longhaul::config {

enum class Source : std::uint8_t {
  automatic,  // the client's if replies to it return through this host, else the far proxy's
  client,
  proxy
};

}  // namespace longhaul::config
