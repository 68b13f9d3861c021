// SPDX-License-Identifier: Apache-2.0
// The kernel's TCP measurements of the line. Separate from tcp_socket.h, because the kernel's header with
// these fields conflicts with the C library's header that Asio includes.
#pragma once
#include <cstdint>

namespace longhaul::link {

struct LineMeasure {
  std::uint64_t delivery_rate = 0;   // bytes a second, recent arrivals as the kernel saw them; 0: unknown
  bool application_limited = false;  // the rate is only that of our offered data
};
LineMeasure measure_line(int socket);

}  // namespace longhaul::link
