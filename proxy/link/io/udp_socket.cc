// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_socket.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <boost/asio/ip/v6_only.hpp>

#include "proxy/net/local_end.h"
#include "proxy/net/marks.h"

namespace longhaul::link::udp {
namespace asio = boost::asio;
namespace {

// Buffer for datagrams that wait while the event loop is busy: about 12 ms at 10 Gbit/s, of which the kernel
// uses about half for its own structures.
constexpr int kReceiveBytes = 16 << 20;
// The carrier paces, so little waits here: a few large sends.
constexpr int kSendBytes = 2 << 20;

template <class T>
bool set(int socket, int level, int option, const T& value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

void set_options(int socket, bool v6, UdpAnswers answers) {
  const int on = 1;
  // More than net.core.*mem_max needs CAP_NET_ADMIN; without it, the maximum that the system allows.
  if (!set(socket, SOL_SOCKET, SO_RCVBUFFORCE, kReceiveBytes))
    set(socket, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
  if (!set(socket, SOL_SOCKET, SO_SNDBUFFORCE, kSendBytes)) set(socket, SOL_SOCKET, SO_SNDBUF, kSendBytes);
  set(socket, SOL_SOCKET, SO_MARK, net::kOwnSocketMark);
  // Datagrams are never fragmented, and the kernel's path MTUs are not used: the carrier probes the MTU
  // itself, and ICMP messages can be forged. IPv4 options count for the IPv4 half of a socket of both
  // families, too.
  set(socket, IPPROTO_IP, IP_MTU_DISCOVER, int{IP_PMTUDISC_PROBE});
  if (v6) set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, int{IPV6_PMTUDISC_PROBE});
  set(socket, SOL_UDP, UDP_GRO, on);
  set(socket, SOL_SOCKET, SO_TIMESTAMPNS, on);
  if (answers == UdpAnswers::from_address_used) {
    if (v6) {
      set(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, on);
    } else {
      set(socket, IPPROTO_IP, IP_PKTINFO, on);
    }
  }
}

}  // namespace

Result<asio::ip::udp::socket> open_udp_socket(asio::io_context& io, const UdpAddress& at, UdpAnswers answers,
                                              const std::string& interface) {
  boost::system::error_code error;
  asio::ip::udp::socket socket(io);
  socket.open(at.protocol(), error);
  if (error) return error;
  const bool v6 = at.protocol() == asio::ip::udp::v6();
  // Like the TCP listener: [::] accepts both families, a single IPv6 address only IPv6.
  if (v6) socket.set_option(asio::ip::v6_only(!at.address().is_unspecified()), error);
  if (error) return error;
  set_options(socket.native_handle(), v6, answers);
  if (!interface.empty()) error = net::use_interface(socket.native_handle(), interface);
  if (error) return error;
  socket.bind(at, error);
  if (error) return error;
  socket.non_blocking(true, error);
  if (error) return error;
  return socket;
}

}  // namespace longhaul::link::udp
