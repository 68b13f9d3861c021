// SPDX-License-Identifier: Apache-2.0
// Which peers share the dictionary on disk: those in a common configured group, none by default.
// codecs/reduction/peer_segments.h implements sharing.
#pragma once
#include "proxy/config/config.h"

namespace longhaul::config {

// Whether each of the two peers may read the segments of the other's link: [dictionary] share names a group
// that contains both.
bool share_dictionary(const Config& config, const Peer& one, const Peer& other);

// One sentence for each group that has no effect.
std::vector<std::string> sharing_warnings(const Config& config);

}  // namespace longhaul::config
