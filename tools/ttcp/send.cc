// SPDX-License-Identifier: Apache-2.0
// See send.h.
#include "tools/ttcp/send.h"

#include <algorithm>

namespace longhaul::ttcp {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(TimePoint began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

[[noreturn]] void gone(int error) {
  if (error == ECONNREFUSED) throw PeerGone("the other side's data port is closed");
  if (error == ECONNRESET || error == EPIPE) throw PeerGone("the other side aborted the data connection");
  if (error == EMSGSIZE)
    throw measuring::Trouble("packets of this size are too large for the socket or the path");
  throw PeerGone("cannot send: " + std::generic_category().message(error));
}

}  // namespace

void fill_with_pattern(std::span<std::byte> buffer) {
  constexpr unsigned char kFirst = ' ' + 1;
  constexpr unsigned char kLast = '~';
  unsigned char next = kFirst;
  for (std::byte& each : buffer) {
    each = std::byte{next};
    next = next == kLast ? kFirst : static_cast<unsigned char>(next + 1);
  }
}

std::uint64_t send_all(int socket, Bytes bytes, const Stop& stop) {
  std::uint64_t calls = 0;
  while (!bytes.empty()) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      ++calls;
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      wait_writable(socket, std::nullopt, stop);
    } else if (errno != EINTR) {
      gone(errno);
    }
  }
  return calls;
}

namespace {

// 0, or why it was not sent, where waiting does not help.
int try_datagram(int socket, Bytes datagram, const Stop& stop) {
  for (;;) {
    if (::send(socket, datagram.data(), datagram.size(), MSG_NOSIGNAL) >= 0) return 0;
    if (errno == EAGAIN)
      wait_writable(socket, std::nullopt, stop);
    else if (errno == ENOBUFS || errno == ENOMEM)
      sleep_until(Clock::now() + 1ms, stop);  // an interface's queue is full; nothing says when it is not
    else if (errno != EINTR)
      return errno;
  }
}

// By a firewall on the way, or here; or by the receiver's kernel, which an earlier packet found without a
// socket.
bool is_refusal(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EPERM ||
         error == EACCES;
}

void send_or_lose(int socket, Bytes datagram, const Stop& stop) {
  const int error = try_datagram(socket, datagram, stop);
  if (error != 0 && !is_refusal(error)) gone(error);
}

}  // namespace

void send_datagram(int socket, Bytes datagram, const Stop& stop) {
  if (const int error = try_datagram(socket, datagram, stop)) gone(error);
}

Sent send_tcp(int socket, std::uint32_t payload_bytes, const Budget& budget, const Stop& stop) {
  std::vector<std::byte> packet(payload_bytes);
  fill_with_pattern(packet);
  Sent sent;
  const TimePoint began = Clock::now();
  do {
    stop.check();
    send_all(socket, packet, stop);
    ++sent.packets;
    sent.seconds = seconds_since(began);
  } while (!budget.is_spent(sent.packets, sent.seconds));
  if (::shutdown(socket, SHUT_WR) != 0) gone(errno);
  return sent;
}

Sent send_udp(int socket, std::uint32_t test, std::uint32_t payload_bytes, double payload_rate,
              const Budget& budget, const Stop& stop) {
  std::vector<std::byte> packet(std::max<std::size_t>(payload_bytes, kLabelBytes));
  fill_with_pattern(packet);
  const std::span<std::byte, kLabelBytes> label{packet.data(), kLabelBytes};
  write_label({test, kStartMark}, label);
  send_or_lose(socket, label, stop);
  const double seconds_each = payload_rate > 0 ? 8. * payload_bytes / payload_rate : 0;
  Sent sent;
  const TimePoint began = Clock::now();
  do {
    stop.check();
    if (seconds_each > 0)  // a late packet is made up for: each has its own time
      sleep_until(began + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
                              seconds_each * static_cast<double>(sent.packets))),
                  stop);
    write_label({test, sent.packets}, label);
    send_or_lose(socket, packet, stop);
    ++sent.packets;
    sent.seconds = seconds_since(began);
  } while (!budget.is_spent(sent.packets, sent.seconds));
  return sent;
}

void send_end_mark(int socket, std::uint32_t test) {
  std::array<std::byte, kLabelBytes> mark;
  write_label({test, kEndMark}, mark);
  [[maybe_unused]] const auto sent = ::send(socket, mark.data(), mark.size(), MSG_NOSIGNAL);
}

}  // namespace longhaul::ttcp
