// SPDX-License-Identifier: Apache-2.0
// What the kernel's TCP measured of the line. Apart from tcp_socket.h, because the kernel's header that knows
// these fields and the C library's that Asio includes cannot stand in one file.
#pragma once
#include <cstdint>

namespace longhaul::link {

struct LineMeasure {
  std::uint64_t delivery_rate = 0;   // bytes a second, what the kernel saw arrive lately; 0: unknown
  bool application_limited = false;  // the measure is only what we offered
};
LineMeasure measure_line(int socket);

}  // namespace longhaul::link
