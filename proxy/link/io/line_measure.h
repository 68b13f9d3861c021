// SPDX-License-Identifier: Apache-2.0
// The kernel's TCP measurements of the line. Separate from tcp_socket.h, because the kernel's header with
// these fields conflicts with the C library's header that Asio includes.
#pragma once
#include <cstdint>

namespace longhaul::link {

struct LineMeasure {
  std::uint64_t delivery_rate = 0;   // bytes per second, as measured by the kernel; 0: unknown
  bool application_limited = false;  // the rate was limited by our data, not by the line
};
LineMeasure measure_line(int socket);

}  // namespace longhaul::link
