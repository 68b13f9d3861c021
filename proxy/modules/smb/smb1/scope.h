// SPDX-License-Identifier: Apache-2.0
// What the server must have answered before a request may be sent: promises that it could show to be unkept.
// server_leg.h waits for that.
#pragma once
#include "codecs/interval_set.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

struct Scope {
  enum class Of : std::uint8_t {
    nothing,
    overlap,     // promised writes of the open that overlap the range
    open,        // everything promised of one open
    everything,  // everything promised
    closing,     // every request of ours that names the open; smbd 4.17 dies of a CLOSE amid READs
    silence,     // every request of ours
  } of = Of::nothing;
  OpenKey open{};
  Interval range{};
};

// Of a request of the client. All data has arrived by then, so waiting for promises costs no round trip of
// the line.
Scope scope_of(const Message& request, Connection& connection);

}  // namespace longhaul::smb::smb1
