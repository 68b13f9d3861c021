// SPDX-License-Identifier: Apache-2.0
// Receives one test's packets while the control connection tells how far the sender is. Leaves counting to
// tally.h and the order of tests to serve.h.
#pragma once
#include "tools/ttcp/channel.h"

namespace longhaul::ttcp {

// They end whatever is lost: when the sender has said that all is sent and no more comes, when it goes away
// (PeerGone), or when neither data nor word came for 150 s (PeerGone).
Receipt receive_udp(int socket, const Announcement& announcement, Channel& control, const Stop& stop);
// Takes the first connection from the control connection's host.
Receipt receive_tcp(int listener, const Announcement& announcement, Channel& control, const Stop& stop);

}  // namespace longhaul::ttcp
