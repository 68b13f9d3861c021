// SPDX-License-Identifier: Apache-2.0
// Plain loops; a timer closes what takes too long.
#include "tools/probe/transfer.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>

#include "tools/measuring/messages.h"
#include "tools/measuring/outcome.h"
#include "tools/measuring/trouble.h"
#include "tools/probe/bound.h"
#include "tools/probe/tcp_facts.h"

namespace longhaul::probe {
namespace {

using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using measuring::Trouble;
using namespace std::chrono_literals;

using measuring::kOutcome;
constexpr auto kSampleEvery = 20ms;
constexpr auto kDrain = 60s;         // for what a full buffer still holds when sending is over
constexpr auto kTrainQuiet = 300ms;  // after the last packet of a train
constexpr std::size_t kTrainPayload = 1352;
constexpr std::int64_t kMost = std::int64_t{1} << 53;  // what JSON readers keep exactly

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Bytes that do not compress.
const std::vector<std::byte>& load() {
  static const std::vector<std::byte> kLoad = [] {
    std::vector<std::byte> made(256 * 1024);
    std::uint64_t state = 88172645463325252u;
    for (std::byte& byte : made) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      byte = static_cast<std::byte>(state);
    }
    return made;
  }();
  return kLoad;
}

std::uint64_t count(const boost::json::object& message, const char* name) {
  return static_cast<std::uint64_t>(measuring::number(message, name, 0, kMost));
}

}  // namespace

boost::json::object to_json(const Sent& sent) {
  boost::json::object object;
  object["sent"] = sent.sent;
  object["again"] = sent.again;
  object["mean_rtt_ns"] = static_cast<std::int64_t>(sent.mean_rtt_us * 1000);
  object["least_rtt_ns"] = static_cast<std::int64_t>(sent.least_rtt_us * 1000);
  object["mss"] = sent.mss;
  object["timestamps"] = sent.timestamps;
  object["congestion_control"] = sent.congestion_control;
  return object;
}

Sent read_sent(const boost::json::object& message) {
  Sent sent;
  sent.sent = count(message, "sent");
  sent.again = count(message, "again");
  sent.mean_rtt_us = static_cast<double>(count(message, "mean_rtt_ns")) / 1000;
  sent.least_rtt_us = static_cast<double>(count(message, "least_rtt_ns")) / 1000;
  sent.mss = static_cast<unsigned>(measuring::number(message, "mss", 1, 65'535));
  sent.timestamps = measuring::truth(message, "timestamps");
  sent.congestion_control = measuring::text(message, "congestion_control", 64);
  return sent;
}

boost::json::object to_json(const Received& received) {
  boost::json::object object;
  object["bytes"] = received.bytes;
  object["ns"] = static_cast<std::int64_t>(received.seconds * 1e9);
  boost::json::array seconds;
  for (const std::uint64_t bytes : received.each_second) seconds.emplace_back(bytes);
  object["each_second"] = seconds;
  return object;
}

Received read_received(const boost::json::object& message) {
  Received received;
  received.bytes = count(message, "bytes");
  received.seconds = static_cast<double>(count(message, "ns")) / 1e9;
  for (const auto& value : measuring::array(message, "each_second", 100'000)) {
    boost::system::error_code error;
    const auto bytes = value.to_number<std::uint64_t>(error);
    if (error) throw Trouble("invalid answer from the agent: each_second");
    received.each_second.push_back(bytes);
  }
  return received;
}

asio::awaitable<Sent> send_for(tcp::socket socket, std::chrono::milliseconds time) {
  const Bound bound(socket, time + kDrain);
  const auto start = Clock::now();
  auto next_sample = start;
  double sum = 0;
  unsigned samples = 0;
  const auto buffer = asio::buffer(load());
  while (Clock::now() - start < time) {
    const auto [error, size] = co_await socket.async_write_some(buffer, kOutcome);
    if (error)
      throw Trouble("the transfer failed: " + (bound.over() ? "no data for too long" : error.message()));
    if (Clock::now() < next_sample) continue;
    next_sample = Clock::now() + kSampleEvery;
    sum += tcp_facts(socket.native_handle()).rtt_us;
    ++samples;
  }
  error_code ignored;
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  std::array<char, 16> rest;
  const auto [error, size] = co_await socket.async_read_some(asio::buffer(rest), kOutcome);
  if (error != asio::error::eof)
    throw Trouble("the transfer failed before its end: " +
                  (bound.over() ? "no data for too long" : error.message()));
  const TcpFacts facts = tcp_facts(socket.native_handle());
  Sent sent;
  sent.sent = facts.sent;
  sent.again = facts.again;
  sent.mean_rtt_us = samples > 0 ? sum / samples : 0;
  sent.least_rtt_us = facts.least_rtt_us;
  sent.mss = facts.mss;
  sent.timestamps = facts.timestamps;
  sent.congestion_control = congestion_control(socket.native_handle());
  co_return sent;
}

asio::awaitable<Received> receive_all(tcp::socket socket, std::chrono::milliseconds most) {
  const Bound bound(socket, most);
  Received received;
  std::vector<std::byte> room(256 * 1024);
  const auto start = Clock::now();
  while (true) {
    const auto [error, size] = co_await socket.async_read_some(asio::buffer(room), kOutcome);
    received.seconds = seconds_since(start);
    received.bytes += size;
    received.each_second.resize(static_cast<std::size_t>(received.seconds) + 1);
    received.each_second.back() += size;
    if (error == asio::error::eof) break;
    if (error)
      throw Trouble("the transfer failed: " + (bound.over() ? "no data for too long" : error.message()));
  }
  co_return received;
}

void send_train(udp::socket& connected) {
  error_code ignored;  // a packet that cannot be sent is one that does not arrive
  for (unsigned i = 0; i < kTrainPackets; ++i)
    connected.send(asio::buffer(load().data(), kTrainPayload), 0, ignored);
}

asio::awaitable<Train> receive_train(udp::socket& socket, std::chrono::milliseconds most) {
  const int on = 1;
  (void)::setsockopt(socket.native_handle(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  socket.non_blocking(true);
  const auto address = socket.local_endpoint().address();
  const std::size_t headers = address.is_v4() || address.to_v6().is_v4_mapped() ? 28 : 48;
  Train train;
  timespec first{}, last{};
  Bound bound(socket, most);
  while (train.packets < kTrainPackets) {
    const auto [error] = co_await socket.async_wait(udp::socket::wait_read, kOutcome);
    if (error) break;
    std::array<std::byte, 2048> room;
    alignas(cmsghdr) std::array<char, 128> control;
    iovec part{room.data(), room.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(socket.native_handle(), &message, 0);
    if (size <= static_cast<ssize_t>(kHello)) continue;
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item))
      if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SO_TIMESTAMPNS)
        std::memcpy(&last, CMSG_DATA(item), sizeof last);
    if (train.packets++ == 0)
      first = last;
    else
      train.ip_bytes += static_cast<std::size_t>(size) + headers;
    train.seconds = static_cast<double>(last.tv_sec - first.tv_sec) +
                    static_cast<double>(last.tv_nsec - first.tv_nsec) / 1e9;
    bound.renew(kTrainQuiet);
  }
  co_return train;
}

}  // namespace longhaul::probe
