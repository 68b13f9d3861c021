// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/received_batch.h"

#include <algorithm>
#include <cstring>

namespace longhaul::link::udp {

std::size_t ReceivedBatch::receive(int socket) {
  for (std::size_t i = 0; i < kMessages; ++i) {
    parts_[i] = {bytes_.get() + i * kStride, kMessageBytes};
    msghdr& head = messages_[i].msg_hdr;
    head = {};
    head.msg_name = &names_[i];
    head.msg_namelen = sizeof names_[i];
    head.msg_iov = &parts_[i];
    head.msg_iovlen = 1;
    control_[i].prepare(head);
  }
  const int got = ::recvmmsg(socket, messages_.data(), kMessages, MSG_DONTWAIT, nullptr);
  // Errors other than an empty socket are old ICMP messages that the call has cleared.
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

UdpAddress ReceivedBatch::from(std::size_t message) const {
  const msghdr& its = head(message);
  UdpAddress address;
  std::memcpy(address.data(), its.msg_name, std::min<std::size_t>(its.msg_namelen, address.capacity()));
  return address;
}

}  // namespace longhaul::link::udp
