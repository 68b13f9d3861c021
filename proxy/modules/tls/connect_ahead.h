// SPDX-License-Identifier: Apache-2.0
// What of TLS may be sent on a connection that was made before its client asked: the client's part of a
// handshake.
#pragma once
#include "proxy/modules/connect_ahead.h"

namespace longhaul::tls {

// Handshake messages alone: the ClientHello, which executes nothing. Not early data (RFC 8446, section 8).
bool is_handshake(Bytes said);
// Anything but an alert, with which a server may end a connection on which it has waited too long. If the
// alert answers the ClientHello, the next connection gets it as well.
bool is_no_alert(Bytes first);

inline constexpr modules::ConnectAhead kConnectAhead{
    .feature = "tls.connect_ahead", .may_repeat = is_handshake, .is_answer = is_no_alert};

}  // namespace longhaul::tls
