// SPDX-License-Identifier: Apache-2.0
// The lines to a peer: [[peer.path]] and the peer's policy. read.cc reads the rest of a peer.
#pragma once
#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// `section` is `peer`'s, whose own address and rate have been read. Fills paths and policy, and the address.
void read_paths(const Section& section, Peer& peer);

}  // namespace longhaul::config
