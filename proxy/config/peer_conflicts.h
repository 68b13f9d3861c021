// SPDX-License-Identifier: Apache-2.0
// What no two peers may have in common: name, key, address, and networks and names of the same size. Each is
// refused with a sentence at its line; read.cc reads the peers.
#pragma once
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// `section` is `peer`'s, with these fingerprints.
void refuse_conflict(const Section& section, const std::vector<Text>& keys, const Peer& other,
                     const Peer& peer);

}  // namespace longhaul::config
