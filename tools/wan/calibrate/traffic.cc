// SPDX-License-Identifier: Apache-2.0
// One thread sends on schedule and reads in between; stamps come from the kernel, so its own delays do not
// matter.
#include "tools/wan/calibrate/traffic.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tools/wan/clock.h"

namespace longhaul::wan {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kReadAtOnce = 64;
constexpr std::size_t kPacketsAtOnce = 32;
constexpr int kReceiveBuffer = 64 * 1024 * 1024;  // what a late burst may bring at once
constexpr auto kTick = 1ms;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address right_address(bool ipv6) {
  Address address;
  if (ipv6) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    ::inet_pton(AF_INET6, Rig::kRightAddress6, &v6.sin6_addr);
    std::memcpy(&address.storage, &v6, sizeof v6);
    address.size = sizeof v6;
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    ::inet_pton(AF_INET, Rig::kRightAddress, &v4.sin_addr);
    std::memcpy(&address.storage, &v4, sizeof v4);
    address.size = sizeof v4;
  }
  return address;
}

Descriptor datagram_socket(const Namespace& where, int family) {
  const Inside inside{where};
  return Descriptor{must(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "UDP socket")};
}

class Counter {
 public:
  Counter(const Rig& rig, const Flow& flow) : flow_(flow), address_(right_address(flow.ipv6)) {
    socket_ = datagram_socket(rig.right(), address_.storage.ss_family);
    must(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer),
         "receive buffer");
    const int on = 1;
    must(::setsockopt(socket_.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on), "SO_TIMESTAMPNS");
    must(::bind(socket_.get(), address_.get(), address_.size), "bind the counting end");
    must(::getsockname(socket_.get(), address_.get(), &address_.size), "address of the counting end");
  }
  int descriptor() const { return socket_.get(); }
  const Address& address() const { return address_; }
  const Received& received() const { return received_; }
  bool count();  // false if nothing was there

 private:
  void note(std::chrono::nanoseconds stamp);

  const Flow& flow_;
  Address address_;
  Descriptor socket_;
  Received received_;
  std::chrono::nanoseconds first_ever_{-1};
  std::chrono::nanoseconds first_counted_{-1};
};

void Counter::note(std::chrono::nanoseconds stamp) {
  ++received_.all_packets;
  if (first_ever_ < 0ns) first_ever_ = stamp;
  if (stamp - first_ever_ < flow_.settle) return;
  if (first_counted_ < 0ns) first_counted_ = stamp;
  ++received_.packets;
  received_.span = stamp - first_counted_;
}

bool Counter::count() {
  std::array<mmsghdr, kReadAtOnce> messages{};
  alignas(cmsghdr) std::array<std::array<char, CMSG_SPACE(sizeof(timespec))>, kReadAtOnce> control;
  for (std::size_t i = 0; i < kReadAtOnce; ++i) {  // no room for data: only the stamps are wanted
    messages[i].msg_hdr.msg_control = control[i].data();
    messages[i].msg_hdr.msg_controllen = control[i].size();
  }
  const int got = ::recvmmsg(socket_.get(), messages.data(), kReadAtOnce, MSG_DONTWAIT | MSG_TRUNC, nullptr);
  for (int i = 0; i < got; ++i) {
    const cmsghdr* header = CMSG_FIRSTHDR(&messages[static_cast<std::size_t>(i)].msg_hdr);
    if (header == nullptr || header->cmsg_type != SCM_TIMESTAMPNS)
      throw std::runtime_error("a datagram came without its time of arrival");
    timespec time;
    std::memcpy(&time, CMSG_DATA(header), sizeof time);
    note(std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec});
  }
  return got > 0;
}

class Source {
 public:
  Source(const Rig& rig, const Flow& flow, const Address& to)
      : flow_(flow), socket_(datagram_socket(rig.left(), to.storage.ss_family)) {
    const std::uint32_t headers = flow.ipv6 ? 48 : 28;
    payload_.resize(std::max(flow.packet_bytes, headers + 1) - headers);
    must(::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer),
         "send buffer");
    must(::connect(socket_.get(), to.get(), to.size), "connect");
    part_ = {payload_.data(), payload_.size()};
    for (mmsghdr& message :
         messages_) {  // one packet each: not every kernel cuts up datagrams without offloads
      message.msg_hdr.msg_iov = &part_;
      message.msg_hdr.msg_iovlen = 1;
    }
  }
  std::uint64_t sent() const { return sent_; }

  void send_due(std::chrono::nanoseconds elapsed) {
    const double bits = flow_.packet_bytes * 8.0;
    auto due =
        static_cast<std::uint64_t>(std::chrono::duration<double>(elapsed).count() * flow_.rate_bits / bits) +
        1;
    if (flow_.packets != 0) due = std::min(due, flow_.packets);
    while (sent_ < due) {
      const auto batch = static_cast<unsigned>(std::min<std::uint64_t>(due - sent_, kPacketsAtOnce));
      const int sent = ::sendmmsg(socket_.get(), messages_.data(), batch, MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) must(-1, "send");
      if (sent <= 0) return;  // no room: the rest is due at the next tick
      sent_ += static_cast<std::uint64_t>(sent);
    }
  }

 private:
  const Flow& flow_;
  Descriptor socket_;
  std::vector<char> payload_;
  iovec part_{};
  std::array<mmsghdr, kPacketsAtOnce> messages_{};
  std::uint64_t sent_ = 0;
};

void wait_readable(int descriptor, std::chrono::nanoseconds limit) {
  pollfd wanted{descriptor, POLLIN, 0};
  timespec timeout{limit / 1s, (limit % 1s).count()};
  ::ppoll(&wanted, 1, &timeout, nullptr);
}

}  // namespace

double Received::rate_bits(std::uint32_t packet_bytes) const {
  if (packets < 2 || span <= 0ns) return 0;
  return static_cast<double>(packets - 1) * packet_bytes * 8 / std::chrono::duration<double>(span).count();
}

Received send_and_count(const Rig& rig, const Flow& flow) {
  Counter counter{rig, flow};
  Source source{rig, flow, counter.address()};
  const TimePoint start = clock_now();
  const auto finished = [&](TimePoint now) {
    return now - start >= flow.duration || (flow.packets != 0 && source.sent() >= flow.packets);
  };
  for (TimePoint now = start; !finished(now); now = clock_now()) {
    source.send_due(now - start);
    const TimePoint next = now + kTick;
    while (counter.count() && clock_now() < next) {
    }
    // Sleeps the tick out rather than waking for every packet: the stamps are the kernel's.
    const auto left = next - clock_now();
    if (left > 0ns) {
      timespec pause{0, left.count()};
      ::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    }
  }
  for (TimePoint last = clock_now(); clock_now() - last < flow.quiet;) {
    if (counter.count())
      last = clock_now();
    else
      wait_readable(counter.descriptor(), flow.quiet);
  }
  Received result = counter.received();
  result.sent = source.sent();
  return result;
}

}  // namespace longhaul::wan
