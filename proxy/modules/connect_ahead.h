// SPDX-License-Identifier: Apache-2.0
// What the program must know of a protocol to give a flow a connection that was made before its client asked
// (proxy/flows/spares.h). Only for protocols whose clients speak first.
#pragma once
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul::modules {

struct ConnectAhead {
  std::string_view feature;  // that switches it
  // Whether everything that a server was sent on a new connection, and that it has not answered, may be sent
  // again on another connection without executing anything twice that must not be. The end may be incomplete.
  bool (*may_repeat)(Bytes said);
  // Whether a server's first bytes answer the client. False: they may be about the idle time before it.
  bool (*is_answer)(Bytes first);
};

}  // namespace longhaul::modules
