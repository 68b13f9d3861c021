// SPDX-License-Identifier: Apache-2.0
// The control messages of recvmsg() and sendmsg(): properties of received datagrams, and of datagrams to
// send.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>

namespace longhaul::link::udp {

// Properties of a received message.
struct DatagramInfo {
  std::size_t segment = 0;      // of each datagram except the last, which may be smaller; 0: only one
  boost::asio::ip::address to;  // unspecified if not requested
  std::optional<std::chrono::nanoseconds> arrived;  // by system_time()
};

// Time since 1970, by the system's clock, which may be changed at any time.
std::chrono::nanoseconds system_time();

// The buffer for one message's control messages.
class DatagramControl {
 public:
  // ---- To receive.
  void prepare(msghdr& message) {
    message.msg_control = bytes_.data();
    message.msg_controllen = bytes_.size();
  }
  static DatagramInfo read(msghdr& message);

  // ---- To send. Call each at most once.
  void add_source(const boost::asio::ip::address& source);  // unspecified: by the routing table
  void add_segment(std::uint16_t bytes);
  void attach_to(msghdr& message) {
    if (used_ == 0) return;
    message.msg_control = bytes_.data();
    message.msg_controllen = used_;
  }

 private:
  template <class T>
  void add(int level, int type, const T& value);

  // Room for a segment size or GRO size, a time, and packet information of either family.
  static constexpr std::size_t kBytes = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(timespec)) +
                                        CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo));
  alignas(cmsghdr) std::array<std::byte, kBytes> bytes_;  // valid up to used_
  std::size_t used_ = 0;
};

}  // namespace longhaul::link::udp
