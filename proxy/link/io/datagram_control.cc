// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/datagram_control.h"

#include <netinet/udp.h>

#include <cassert>
#include <cstring>

namespace longhaul::link::udp {
namespace asio = boost::asio;
namespace {

std::chrono::nanoseconds since_1970(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

std::chrono::nanoseconds system_time() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return since_1970(time);
}

DatagramInfo DatagramControl::read(msghdr& message) {
  DatagramInfo info;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      int size = 0;
      std::memcpy(&size, CMSG_DATA(c), sizeof size);
      info.segment = size > 0 ? static_cast<std::size_t>(size) : 0;
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      timespec time;
      std::memcpy(&time, CMSG_DATA(c), sizeof time);
      info.arrived = since_1970(time);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo packet;
      std::memcpy(&packet, CMSG_DATA(c), sizeof packet);
      info.to = asio::ip::address_v4(ntohl(packet.ipi_spec_dst.s_addr));
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo packet;
      std::memcpy(&packet, CMSG_DATA(c), sizeof packet);
      asio::ip::address_v6::bytes_type bytes;
      std::memcpy(bytes.data(), &packet.ipi6_addr, bytes.size());
      info.to = asio::ip::address_v6(bytes);
    }
  }
  return info;
}

template <class T>
void DatagramControl::add(int level, int type, const T& value) {
  assert(used_ + CMSG_SPACE(sizeof value) <= bytes_.size());
  cmsghdr head{};
  head.cmsg_len = CMSG_LEN(sizeof value);
  head.cmsg_level = level;
  head.cmsg_type = type;
  std::memcpy(bytes_.data() + used_, &head, sizeof head);
  std::memcpy(bytes_.data() + used_ + CMSG_LEN(0), &value, sizeof value);
  used_ += CMSG_SPACE(sizeof value);
}

void DatagramControl::add_source(const asio::ip::address& source) {
  if (source.is_unspecified()) return;
  if (source.is_v4()) {
    in_pktinfo info{};
    info.ipi_spec_dst.s_addr = htonl(source.to_v4().to_uint());
    return add(IPPROTO_IP, IP_PKTINFO, info);
  }
  in6_pktinfo info{};
  const auto bytes = source.to_v6().to_bytes();
  std::memcpy(&info.ipi6_addr, bytes.data(), bytes.size());
  add(IPPROTO_IPV6, IPV6_PKTINFO, info);
}

void DatagramControl::add_segment(std::uint16_t bytes) { add(SOL_UDP, UDP_SEGMENT, bytes); }

}  // namespace longhaul::link::udp
