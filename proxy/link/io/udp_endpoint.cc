// SPDX-License-Identifier: Apache-2.0
// Linux's UDP: generic segmentation offload to send (4.18), generic receive offload to receive (5.0), and the
// plain calls where the kernel or a device refuses them.
#include "proxy/link/io/udp_endpoint.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/v6_only.hpp>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>

#include "codecs/work.h"
#include "proxy/net/local_end.h"
#include "proxy/net/marks.h"

namespace longhaul::link::udp {
namespace asio = boost::asio;
namespace {

// Datagrams that may wait in the socket while the loop is busy elsewhere: some 12 ms of 10 Gbit/s, of which
// the kernel counts about half for its own structures.
constexpr int kReceiveBytes = 16 << 20;
// Pacing is ours, so little waits here: a few large sends.
constexpr int kSendBytes = 2 << 20;

// One receive takes some messages, each of which may be many datagrams of one sender, as one IP packet's
// length. The buffers begin at odd places, so that they do not compete for the same lines of the processor's
// cache.
constexpr std::size_t kMessages = 16;
constexpr std::size_t kMessageBytes = 65'536, kStride = kMessageBytes + 192;
// No socket holds the loop for long.
constexpr std::size_t kReceiveTurnBytes = 256 * 1024;
constexpr int kReceiveTurnCalls = 8;
constexpr std::uint64_t kReceiveTurnWork = 4 << 20;
// If a datagram seems to have waited longer than this, its timestamp is considered wrong.
constexpr Duration kMostLate = std::chrono::seconds(1);

// For a segment size or GRO size, a time, and packet information of either family.
using ControlBytes =
    std::array<std::byte, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(timespec)) +
                              CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo))>;
struct Control {
  alignas(cmsghdr) ControlBytes bytes;
};

struct ReceiveScratch {
  std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(kMessages * kStride);
  std::array<Control, kMessages> control;
  std::array<sockaddr_in6, kMessages> names;  // large enough for either family
  std::array<iovec, kMessages> parts;
  std::array<mmsghdr, kMessages> messages;
};

ReceiveScratch& receive_scratch() {
  // One for the thread: it never holds bytes across a wait.
  thread_local ReceiveScratch scratch;
  return scratch;
}

std::uint64_t key_of(UdpEndpoint::IdBytes id) {
  std::uint64_t key;
  std::memcpy(&key, id.data(), sizeof key);
  return key;
}

UdpAddress address_of(const msghdr& message) {
  UdpAddress address;
  std::memcpy(address.data(), message.msg_name,
              std::min<std::size_t>(message.msg_namelen, address.capacity()));
  return address;
}

// The kernel's information about a received message.
struct About {
  std::size_t segment = 0;  // 0: it is one datagram
  asio::ip::address to;
  std::optional<std::chrono::nanoseconds> arrived;  // since 1970, by the system's clock
};

std::chrono::nanoseconds since_1970(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::chrono::nanoseconds system_time() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return since_1970(time);
}

About read_control(msghdr& message) {
  About about;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      int size = 0;
      std::memcpy(&size, CMSG_DATA(c), sizeof size);
      about.segment = size > 0 ? static_cast<std::size_t>(size) : 0;
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      timespec time;
      std::memcpy(&time, CMSG_DATA(c), sizeof time);
      about.arrived = since_1970(time);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      about.to = asio::ip::address_v4(ntohl(info.ipi_spec_dst.s_addr));
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      asio::ip::address_v6::bytes_type bytes;
      std::memcpy(bytes.data(), &info.ipi6_addr, bytes.size());
      about.to = asio::ip::address_v6(bytes);
    }
  }
  return about;
}

// Control messages are appended one after another; returns where the next begins.
template <class T>
std::size_t append_control(Control& control, std::size_t at, int level, int type, const T& value) {
  cmsghdr head{};
  head.cmsg_len = CMSG_LEN(sizeof value);
  head.cmsg_level = level;
  head.cmsg_type = type;
  std::memcpy(control.bytes.data() + at, &head, sizeof head);
  std::memcpy(control.bytes.data() + at + CMSG_LEN(0), &value, sizeof value);
  return at + CMSG_SPACE(sizeof value);
}

std::size_t append_source(Control& control, std::size_t at, const asio::ip::address& source) {
  if (source.is_unspecified()) return at;
  if (source.is_v4()) {
    in_pktinfo info{};
    info.ipi_spec_dst.s_addr = htonl(source.to_v4().to_uint());
    return append_control(control, at, IPPROTO_IP, IP_PKTINFO, info);
  }
  in6_pktinfo info{};
  const auto bytes = source.to_v6().to_bytes();
  std::memcpy(&info.ipi6_addr, bytes.data(), bytes.size());
  return append_control(control, at, IPPROTO_IPV6, IPV6_PKTINFO, info);
}

template <class T>
bool set(int socket, int level, int option, const T& value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

}  // namespace

UdpEndpoint::UdpEndpoint(asio::io_context& io, Answers answers)
    : socket_(io), answers_(answers), self_(std::make_shared<UdpEndpoint*>(this)) {}

UdpEndpoint::~UdpEndpoint() {
  *self_ = nullptr;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

Result<std::unique_ptr<UdpEndpoint>> UdpEndpoint::open(asio::io_context& io, const UdpAddress& at,
                                                       Answers answers, const std::string& interface) {
  std::unique_ptr<UdpEndpoint> endpoint(new UdpEndpoint(io, answers));
  if (auto bound = endpoint->bind(at, interface); !bound) return bound.error();
  endpoint->wait_readable();
  return endpoint;
}

Result<void> UdpEndpoint::bind(const UdpAddress& at, const std::string& interface) {
  boost::system::error_code error;
  socket_.open(at.protocol(), error);
  if (error) return error;
  const bool v6 = at.protocol() == asio::ip::udp::v6();
  // As the TCP listener: [::] takes both families, a single IPv6 address is of its own.
  if (v6) socket_.set_option(asio::ip::v6_only(!at.address().is_unspecified()), error);
  if (error) return error;
  set_options(v6);
  if (!interface.empty()) error = net::use_interface(socket_.native_handle(), interface);
  if (error) return error;
  socket_.bind(at, error);
  if (error) return error;
  socket_.non_blocking(true, error);
  if (!error) local_ = socket_.local_endpoint(error);
  if (error) return error;
  return {};
}

void UdpEndpoint::set_options(bool v6) {
  const int socket = socket_.native_handle();
  const int on = 1;
  // Beyond net.core.*mem_max needs CAP_NET_ADMIN; without it, what the system allows.
  if (!set(socket, SOL_SOCKET, SO_RCVBUFFORCE, kReceiveBytes))
    set(socket, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
  if (!set(socket, SOL_SOCKET, SO_SNDBUFFORCE, kSendBytes)) set(socket, SOL_SOCKET, SO_SNDBUF, kSendBytes);
  set(socket, SOL_SOCKET, SO_MARK, net::kOwnSocketMark);
  // Never fragmented, and the kernel's knowledge of path MTUs is not used: the carrier searches itself, and
  // an ICMP message can be forged. IPv4 options count for the IPv4 half of a socket of both families, too.
  set(socket, IPPROTO_IP, IP_MTU_DISCOVER, int{IP_PMTUDISC_PROBE});
  if (v6) set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, int{IPV6_PMTUDISC_PROBE});
  set(socket, SOL_UDP, UDP_GRO, on);
  set(socket, SOL_SOCKET, SO_TIMESTAMPNS, on);
  if (answers_ == Answers::from_address_used) {
    if (v6) {
      set(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, on);
    } else {
      set(socket, IPPROTO_IP, IP_PKTINFO, on);
    }
  }
}

void UdpEndpoint::add(IdBytes id, Receiver& receiver) { receivers_[key_of(id)] = &receiver; }

void UdpEndpoint::remove(IdBytes id, Receiver& receiver) {
  auto found = receivers_.find(key_of(id));
  if (found != receivers_.end() && found->second == &receiver) receivers_.erase(found);
  std::replace(told_.begin(), told_.end(), &receiver, static_cast<Receiver*>(nullptr));
  std::replace(waiters_.begin(), waiters_.end(), &receiver, static_cast<Receiver*>(nullptr));
}

// -------------------------------------------------------------------------------------------------------
// receiving

void UdpEndpoint::wait_readable() {
  socket_.async_wait(asio::ip::udp::socket::wait_read, [self = self_](boost::system::error_code error) {
    if (!*self || error) return;
    (*self)->on_readable();
  });
}

void UdpEndpoint::on_readable() {
  ReceiveScratch& scratch = receive_scratch();
  std::size_t taken = 0;
  const std::uint64_t begun = work_done;
  for (int call = 0; call < kReceiveTurnCalls && taken < kReceiveTurnBytes; ++call) {
    if (work_done - begun >= kReceiveTurnWork) break;
    for (std::size_t i = 0; i < kMessages; ++i) {
      scratch.parts[i] = {scratch.bytes.get() + i * kStride, kMessageBytes};
      msghdr& head = scratch.messages[i].msg_hdr;
      head = {};
      head.msg_name = &scratch.names[i];
      head.msg_namelen = sizeof scratch.names[i];
      head.msg_iov = &scratch.parts[i];
      head.msg_iovlen = 1;
      head.msg_control = scratch.control[i].bytes.data();
      head.msg_controllen = scratch.control[i].bytes.size();
    }
    const int got =
        ::recvmmsg(socket_.native_handle(), scratch.messages.data(), kMessages, MSG_DONTWAIT, nullptr);
    // Errors other than an empty socket are old ICMP messages that the call has cleared.
    if (got <= 0) break;
    ++counters_.receives;
    const auto system_now = system_time();
    const TimePoint now = Clock::now();
    for (int i = 0; i < got; ++i) {
      mmsghdr& message = scratch.messages[static_cast<std::size_t>(i)];
      const std::span bytes(static_cast<std::byte*>(message.msg_hdr.msg_iov->iov_base), message.msg_len);
      taken += bytes.size();
      if (message.msg_hdr.msg_flags & MSG_TRUNC) continue;
      About about = read_control(message.msg_hdr);
      const auto late = about.arrived ? system_now - *about.arrived : std::chrono::nanoseconds{0};
      dispatch(bytes, about.segment,
               {address_of(message.msg_hdr), std::move(about.to), arrival_of(late, now), now});
    }
    if (got < static_cast<int>(kMessages)) {
      drained_at_ = now;
      break;
    }
  }
  wait_readable();
  end_turn();
}

// The system's clock may be changed at any time, by any amount. But a datagram read now arrived after the
// socket was empty.
TimePoint UdpEndpoint::arrival_of(std::chrono::nanoseconds late, TimePoint now) const {
  const Duration most = now - std::max(drained_at_, now - kMostLate);
  return now - std::clamp<Duration>(late, Duration{0}, most);
}

// GRO joins datagrams of one size from one sender, the last of which may be smaller. It does not compare
// connection ids, so each is looked up.
void UdpEndpoint::dispatch(std::span<std::byte> bytes, std::size_t segment, const Arrival& arrival) {
  if (segment == 0) segment = bytes.size();
  while (!bytes.empty()) {
    const auto datagram = bytes.first(std::min(segment, bytes.size()));
    bytes = bytes.subspan(datagram.size());
    ++counters_.datagrams_received;
    Receiver* receiver = nullptr;
    if (datagram.size() > kConnectionIdBytes) {
      auto found = receivers_.find(key_of(IdBytes(datagram.subspan<1, kConnectionIdBytes>())));
      if (found != receivers_.end()) receiver = found->second;
    }
    if (!receiver) {
      ++counters_.unknown;
      continue;
    }
    if (std::find(told_.begin(), told_.end(), receiver) == told_.end()) told_.push_back(receiver);
    receiver->on_datagram(datagram, arrival);
  }
}

void UdpEndpoint::end_turn() {
  // The callee may remove receivers, or end this endpoint.
  auto self = self_;
  for (std::size_t i = 0; *self && i < told_.size(); ++i)
    if (told_[i]) told_[i]->on_turn_end();
  if (*self) told_.clear();
}

// -------------------------------------------------------------------------------------------------------
// sending

UdpEndpoint::Sent UdpEndpoint::send(DatagramBatch& batch, const asio::ip::address& source, Receiver& waiter) {
  if (waiting_writable_) {
    wait_writable(waiter);
    return Sent::busy;
  }
  const std::size_t datagrams = batch.segments();
  Sent sent = (kernel_segments_ && !batch.one_by_one) || datagrams <= 1 ? send_segmented(batch, source) : send_each(batch, source);
  if (sent == Sent::busy) {
    counters_.datagrams_sent += datagrams - batch.segments();
    wait_writable(waiter);
    return sent;
  }
  if (sent == Sent::yes) counters_.datagrams_sent += datagrams;
  if (sent == Sent::refused) ++counters_.refused;
  batch.clear();
  return sent;
}

UdpEndpoint::Sent UdpEndpoint::outcome_of(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return Sent::busy;
  return error == EMSGSIZE ? Sent::too_large : Sent::refused;
}

UdpEndpoint::Sent UdpEndpoint::send_segmented(DatagramBatch& batch, const asio::ip::address& source) {
  iovec part{batch.bytes.data(), batch.bytes.size()};
  Control control;
  std::size_t used = append_source(control, 0, source);
  const bool many = batch.segments() > 1;
  if (many)
    used =
        append_control(control, used, SOL_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(batch.segment_bytes));
  msghdr message{};
  message.msg_name = batch.to.data();
  message.msg_namelen = static_cast<socklen_t>(batch.to.size());
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (used) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = used;
  }
  ++counters_.sends;
  ssize_t sent;
  do {
    sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Sent::yes;
  const int error = errno;
  if (many && (error == EINVAL || error == EIO || error == EOPNOTSUPP || error == ENOPROTOOPT)) {
    // EIO: the device computes no checksums (before Linux 6.11). EINVAL: this kernel does not know the
    // option, or (before 6.14) a segment is larger than the device's MTU; where each alone passes, it was the
    // option.
    const Sent each = send_each(batch, source);
    if (error != EINVAL || each == Sent::yes) kernel_segments_ = false;
    return each;
  }
  return outcome_of(error);
}

UdpEndpoint::Sent UdpEndpoint::send_each(DatagramBatch& batch, const asio::ip::address& source) {
  std::array<iovec, DatagramBatch::kMaxSegments> parts;
  std::array<mmsghdr, DatagramBatch::kMaxSegments> messages;
  Control control;
  const std::size_t used = append_source(control, 0, source);
  std::size_t count = 0;
  for (std::size_t at = 0; at < batch.bytes.size() && count < messages.size();
       at += batch.segment_bytes, ++count) {
    parts[count] = {batch.bytes.data() + at, std::min(batch.segment_bytes, batch.bytes.size() - at)};
    msghdr& message = messages[count].msg_hdr;
    message = {};
    message.msg_name = batch.to.data();
    message.msg_namelen = static_cast<socklen_t>(batch.to.size());
    message.msg_iov = &parts[count];
    message.msg_iovlen = 1;
    if (used) {
      message.msg_control = control.bytes.data();
      message.msg_controllen = used;
    }
  }
  Sent outcome = Sent::yes;
  std::size_t done = 0;
  while (done < count) {
    ++counters_.sends;
    const int sent = ::sendmmsg(socket_.native_handle(), messages.data() + done,
                                static_cast<unsigned>(count - done), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    outcome = outcome_of(errno);
    if (outcome == Sent::busy) {
      const auto gone = static_cast<std::ptrdiff_t>(done * batch.segment_bytes);
      batch.bytes.erase(batch.bytes.begin(), batch.bytes.begin() + gone);
      return outcome;
    }
    ++done;  // this one is lost; the next may pass
  }
  return outcome;
}

void UdpEndpoint::wait_writable(Receiver& waiter) {
  if (std::find(waiters_.begin(), waiters_.end(), &waiter) == waiters_.end()) waiters_.push_back(&waiter);
  if (std::exchange(waiting_writable_, true)) return;
  socket_.async_wait(asio::ip::udp::socket::wait_write, [self = self_](boost::system::error_code error) {
    if (!*self || error) return;
    UdpEndpoint& endpoint = **self;
    endpoint.waiting_writable_ = false;
    // Those that still find no room are appended again.
    std::vector<Receiver*> waiters = std::exchange(endpoint.waiters_, {});
    std::swap(endpoint.told_, waiters);
    auto alive = self;
    for (std::size_t i = 0; *alive && i < endpoint.told_.size(); ++i)
      if (Receiver* told = endpoint.told_[i]) told->on_writable();
    if (*alive) endpoint.told_.clear();
  });
}

}  // namespace longhaul::link::udp
