// SPDX-License-Identifier: Apache-2.0
// What the kernel's TCP measured of the line. Separate from tcp_socket.h, because the kernel's header with
// these fields conflicts with the C library's header that Asio includes.
#pragma once
#include <cstdint>

namespace longhaul::link {

struct LineMeasure {
  std::uint64_t delivery_rate = 0;   // bytes a second, what the kernel saw arrive lately; 0: unknown
  bool application_limited = false;  // the measure is only what we offered
};
LineMeasure measure_line(int socket);

}  // namespace longhaul::link
