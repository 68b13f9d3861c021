// SPDX-License-Identifier: Apache-2.0
// What the server must have answered before a request may be sent: promises whose failure the request could
// reveal. server_leg.h waits for that.
#pragma once
#include "codecs/interval_set.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

struct Scope {
  enum class Of : std::uint8_t {
    nothing,
    overlap,     // promised writes of the open that overlap the range
    open,        // all promises of one open
    everything,  // all promises
    closing,     // every request of ours for the open; smbd 4.17 crashes at a CLOSE amid READs
    silence,     // every request of ours
  } of = Of::nothing;
  OpenKey open{};
  Interval range{};
};

// The scope of a request of the client. All data has arrived by then, so waiting for promises costs no round
// trip on the line.
Scope scope_of(const Message& request, Connection& connection);

}  // namespace longhaul::smb::smb1
