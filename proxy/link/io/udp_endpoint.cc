// SPDX-License-Identifier: Apache-2.0
// Linux's UDP: generic segmentation offload for sending (4.18), generic receive offload for receiving (5.0),
// and plain calls if the kernel or a device refuses them.
#include "proxy/link/io/udp_endpoint.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "codecs/work.h"
#include "proxy/link/io/received_batch.h"

namespace longhaul::link::udp {
namespace asio = boost::asio;
namespace {

// Limit per turn, so that no socket blocks the event loop for long.
constexpr std::size_t kReceiveTurnBytes = 256 * 1024;
constexpr int kReceiveTurnCalls = 8;
constexpr std::uint64_t kReceiveTurnWork = 4 << 20;
// If a datagram seems to have waited longer than this, its timestamp is considered wrong. Hosts without a
// processor to spare let the loop stand still for seconds.
constexpr Duration kMostLate = std::chrono::seconds(10);

ReceivedBatch& received_batch() {
  // One buffer per thread: it never holds bytes across a wait.
  thread_local ReceivedBatch batch;
  return batch;
}

std::uint64_t key_of(UdpEndpoint::IdBytes id) {
  std::uint64_t key;
  std::memcpy(&key, id.data(), sizeof key);
  return key;
}

}  // namespace

UdpEndpoint::UdpEndpoint(asio::ip::udp::socket socket, UdpAddress local)
    : socket_(std::move(socket)), local_(std::move(local)), self_(std::make_shared<UdpEndpoint*>(this)) {}

UdpEndpoint::~UdpEndpoint() {
  *self_ = nullptr;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

Result<std::unique_ptr<UdpEndpoint>> UdpEndpoint::open(asio::io_context& io, const UdpAddress& at,
                                                       Answers answers, const std::string& interface) {
  auto socket = open_udp_socket(io, at, answers, interface);
  if (!socket) return socket.error();
  boost::system::error_code error;
  UdpAddress local = socket->local_endpoint(error);
  if (error) return error;
  std::unique_ptr<UdpEndpoint> endpoint(new UdpEndpoint(std::move(*socket), std::move(local)));
  endpoint->wait_readable();
  return endpoint;
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
  ReceivedBatch& batch = received_batch();
  std::size_t taken = 0;
  const std::uint64_t begun = work_done;
  for (int call = 0; call < kReceiveTurnCalls && taken < kReceiveTurnBytes; ++call) {
    if (work_done - begun >= kReceiveTurnWork) break;
    const std::size_t got = batch.receive(socket_.native_handle());
    if (got == 0) break;
    ++counters_.receives;
    const auto system_now = system_time();
    const TimePoint now = Clock::now();
    for (std::size_t i = 0; i < got; ++i) {
      const std::span bytes = batch.bytes(i);
      taken += bytes.size();
      if (batch.truncated(i)) continue;
      DatagramInfo info = batch.info(i);
      const auto late = info.arrived ? system_now - *info.arrived : std::chrono::nanoseconds{0};
      dispatch(bytes, info.segment, {batch.from(i), std::move(info.to), arrival_of(late, now), now});
    }
    if (got < ReceivedBatch::kMessages) {
      drained_at_ = now;
      break;
    }
  }
  wait_readable();
  end_turn();
}

// The system's clock may be changed at any time, by any amount. But a datagram that is read now arrived after
// the socket was last empty.
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
  DatagramControl control;
  control.add_source(source);
  const bool many = batch.segments() > 1;
  if (many) control.add_segment(static_cast<std::uint16_t>(batch.segment_bytes));
  msghdr message{};
  message.msg_name = batch.to.data();
  message.msg_namelen = static_cast<socklen_t>(batch.to.size());
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  control.attach_to(message);
  ++counters_.sends;
  ssize_t sent;
  do {
    sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Sent::yes;
  const int error = errno;
  if (many && (error == EINVAL || error == EIO || error == EOPNOTSUPP || error == ENOPROTOOPT)) {
    // EIO: the device computes no checksums (before Linux 6.11). EINVAL: this kernel does not have the
    // option, or (before 6.14) a segment is larger than the device's MTU; if each datagram can be sent alone,
    // the option was the cause.
    const Sent each = send_each(batch, source);
    if (error != EINVAL || each == Sent::yes) kernel_segments_ = false;
    return each;
  }
  return outcome_of(error);
}

UdpEndpoint::Sent UdpEndpoint::send_each(DatagramBatch& batch, const asio::ip::address& source) {
  std::array<iovec, DatagramBatch::kMaxSegments> parts;
  std::array<mmsghdr, DatagramBatch::kMaxSegments> messages;
  DatagramControl control;
  control.add_source(source);
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
    control.attach_to(message);
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
    ++done;  // this datagram is lost; the next may be sent
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
    // Receivers that still find no room are appended again.
    std::vector<Receiver*> waiters = std::exchange(endpoint.waiters_, {});
    std::swap(endpoint.told_, waiters);
    auto alive = self;
    for (std::size_t i = 0; *alive && i < endpoint.told_.size(); ++i)
      if (Receiver* told = endpoint.told_[i]) told->on_writable();
    if (*alive) endpoint.told_.clear();
  });
}

}  // namespace longhaul::link::udp
