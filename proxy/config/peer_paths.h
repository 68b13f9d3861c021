// SPDX-License-Identifier: Apache-2.0
// The lines to a peer: [[peer.path]] and the peer's policy. read.cc reads the rest of a peer.
#pragma once
#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// `section` is the table of `peer`, whose own address and rate have been read. Fills paths, policy and
// address.
void read_paths(const Section& section, Peer& peer);

}  // namespace longhaul::config
