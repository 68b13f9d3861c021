// SPDX-License-Identifier: Apache-2.0
// The part of TLS that may be sent on a connection that was made before its client connected: the client's
// part of a handshake.
#pragma once
#include "proxy/modules/connect_ahead.h"

namespace longhaul::tls {

// Only handshake messages: the ClientHello, which has no effect at the server. No early data (RFC 8446,
// section 8).
bool is_handshake(Bytes said);
// Anything except an alert, with which a server may close a connection that was idle for too long. If the
// alert answers the ClientHello, the next connection gets it as well.
bool is_no_alert(Bytes first);

inline constexpr modules::ConnectAhead kConnectAhead{
    .feature = "tls.connect_ahead", .may_repeat = is_handshake, .is_answer = is_no_alert};

}  // namespace longhaul::tls
