// SPDX-License-Identifier: Apache-2.0
// The keys that both sides derive from the TLS secrets of a new control connection: for the checksums of
// blocks, and for packets.
#pragma once
#include "proxy/link/io/peer_dial.h"

namespace longhaul::link {

// The block codec of a new session; null if one of the sides does not use blocks.
Result<std::unique_ptr<reduction::Reduction>> make_codec(const LinkShared& shared, const config::Peer& peer,
                                                         Agreed& agreed);
// Also written to the key log, if there is one. `own`: this site's side of the session. `path`: the path's
// number, if the sides agreed on paths.
Result<udp::CarrierKeys> packet_keys(const LinkShared& shared, Agreed& agreed, const Token& session, Side own,
                                     std::optional<std::uint64_t> path = std::nullopt);

}  // namespace longhaul::link
