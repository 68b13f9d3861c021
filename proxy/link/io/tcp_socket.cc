// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tcp_socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace longhaul::link {
namespace {

// 600 ms at 400 Mbit/s. Memory is used only for data in flight: the unsent part is bounded separately.
constexpr int kSocketBytes = 32 << 20;

// Seconds. A connection on standby, while UDP carries, is known to be dead within a quarter of a minute.
constexpr int kKeepIdle = 5, kKeepInterval = 2;
constexpr int kKeepProbes = 5;
// Milliseconds. While data is unacknowledged the kernel sends no keep-alives, and by itself it repeats that
// data for a quarter of an hour (tcp(7), tcp_retries2).
constexpr unsigned kUnacknowledged = 1000 * (kKeepIdle + kKeepInterval * kKeepProbes);

}  // namespace

void set_link_buffers(int socket) {
  // Beyond net.core.*mem_max needs CAP_NET_ADMIN. Without it these calls fail, and the kernel grows the
  // buffers by itself.
  setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBytes, sizeof kSocketBytes);
  setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBytes, sizeof kSocketBytes);
}

std::string set_link_options(int socket, const std::string& congestion_control) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion_control.data(),
             static_cast<socklen_t>(congestion_control.size()));
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepIdle, sizeof kKeepIdle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepInterval, sizeof kKeepInterval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kKeepProbes, sizeof kKeepProbes);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledged, sizeof kUnacknowledged);
  char in_force[16] = {};
  socklen_t size = sizeof in_force - 1;
  getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, in_force, &size);
  return in_force;
}

void set_rate_limit(int socket, std::uint64_t ip_bits_per_second) {
  // The kernel paces payload; the bound counts headers, 52 of every 1500 bytes.
  std::uint64_t bytes = ip_bits_per_second ? ip_bits_per_second / 8 * 1448 / 1500 : ~std::uint64_t{0};
  setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes, sizeof bytes);
}

std::size_t unsent_bytes(int socket) {
  int unsent = 0;
  return ioctl(socket, SIOCOUTQNSD, &unsent) == 0 && unsent > 0 ? static_cast<std::size_t>(unsent) : 0;
}

void set_unsent_low_water(int socket, std::uint32_t bytes) {
  setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

}  // namespace longhaul::link
