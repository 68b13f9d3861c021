// SPDX-License-Identifier: Apache-2.0
// Refuses values that two peers have in common: name, key, address, and networks and names of the same size.
// Each error is a sentence with its line; read.cc reads the peers.
#pragma once
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// `section` is the table of `peer`, and `keys` its fingerprints.
void refuse_conflict(const Section& section, const std::vector<Text>& keys, const Peer& other,
                     const Peer& peer);

}  // namespace longhaul::config
