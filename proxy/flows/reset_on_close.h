// SPDX-License-Identifier: Apache-2.0
// What a connection's other end sees when this process dies, kill -9 included: a reset, not an end of the
// stream that would make half a file look whole. Closing in order is left to those who know that all was
// said.
#pragma once
#include <sys/socket.h>

namespace longhaul::flows {

// By the plain system call: Asio's sockets forget a linger option that they know of when they are destroyed.
inline void reset_on_close(int socket, bool on) {
  const linger option{.l_onoff = on ? 1 : 0, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, sizeof option);
}

}  // namespace longhaul::flows
