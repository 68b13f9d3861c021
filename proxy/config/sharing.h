// SPDX-License-Identifier: Apache-2.0
// Which peers share the dictionary on disk: those in a common configured group, none by default.
// Leaves what sharing means to codecs/reduction/peer_segments.h.
#pragma once
#include "proxy/config/config.h"

namespace longhaul::config {

// Whether each of the two peers may read what the other's link has stored: [dictionary] share names a group that
// both are in.
bool share_dictionary(const Config& config, const Peer& one, const Peer& other);

// One sentence for each group that has no effect.
std::vector<std::string> sharing_warnings(const Config& config);

}  // namespace longhaul::config
