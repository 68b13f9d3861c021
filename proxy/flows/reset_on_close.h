// SPDX-License-Identifier: Apache-2.0
// Makes the kernel reset a connection when this process dies, even by kill -9, instead of closing it
// normally, which would make half a file look complete.
#pragma once
#include <sys/socket.h>

namespace longhaul::flows {

// Uses the plain system call: Asio clears a linger option that was set through it when the socket is
// destroyed.
inline void reset_on_close(int socket, bool on) {
  const linger option{.l_onoff = on ? 1 : 0, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, sizeof option);
}

}  // namespace longhaul::flows
