// SPDX-License-Identifier: Apache-2.0
// The properties of a protocol that are needed to give a flow a connection that was made before its client
// connected (proxy/flows/spares.h). Only for protocols whose clients send first.
#pragma once
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul::modules {

struct ConnectAhead {
  std::string_view feature;  // the feature that switches it
  // Whether bytes that were sent to a server on a new connection, and not answered, may be sent again on
  // another connection without executing anything twice that must not be. The last message may be incomplete.
  bool (*may_repeat)(Bytes said);
  // Whether a server's first bytes are a response to the client. False if they may be about the idle time
  // before it.
  bool (*is_answer)(Bytes first);
};

}  // namespace longhaul::modules
