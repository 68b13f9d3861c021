// SPDX-License-Identifier: Apache-2.0
// Memory for the messages that one system call reads from a UDP socket, each of which may consist of many
// datagrams of one sender.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <memory>
#include <span>

#include "proxy/link/endpoint.h"
#include "proxy/link/io/datagram_control.h"

namespace longhaul::link::udp {

class ReceivedBatch {
 public:
  static constexpr std::size_t kMessages = 16;

  // Reads messages from the socket without waiting, and returns their number. If it is less than kMessages,
  // the socket is empty.
  std::size_t receive(int socket);

  // Valid until the next receive(). The bytes may be changed.
  std::span<std::byte> bytes(std::size_t message) const {
    return {static_cast<std::byte*>(head(message).msg_iov->iov_base), messages_[message].msg_len};
  }
  bool truncated(std::size_t message) const { return head(message).msg_flags & MSG_TRUNC; }
  UdpAddress from(std::size_t message) const;
  DatagramInfo info(std::size_t message) { return DatagramControl::read(messages_[message].msg_hdr); }

 private:
  const msghdr& head(std::size_t message) const { return messages_[message].msg_hdr; }

  // A message is at most as long as an IP packet. The stride is not a power of two, so that the buffers do
  // not compete for the same cache lines.
  static constexpr std::size_t kMessageBytes = 65'536, kStride = kMessageBytes + 192;

  std::unique_ptr<std::byte[]> bytes_ = std::make_unique_for_overwrite<std::byte[]>(kMessages * kStride);
  std::array<DatagramControl, kMessages> control_;
  std::array<sockaddr_in6, kMessages> names_;  // large enough for either family
  std::array<iovec, kMessages> parts_;
  std::array<mmsghdr, kMessages> messages_;
};

}  // namespace longhaul::link::udp
