// SPDX-License-Identifier: Apache-2.0
// Reads TCP_INFO with the kernel's own header; built without the precompiled headers, see line_measure.h.
#include "proxy/link/io/line_measure.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace longhaul::link {

LineMeasure measure_line(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {info.tcpi_delivery_rate, info.tcpi_delivery_rate_app_limited != 0};
}

}  // namespace longhaul::link
