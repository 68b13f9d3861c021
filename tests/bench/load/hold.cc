// SPDX-License-Identifier: Apache-2.0
// Connections that stay: idle after one byte each way, or filled until nothing more goes in, until the
// standard input ends.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "loads.h"
#include "sockets.h"

namespace bench {
namespace {

constexpr std::size_t kAtOnce = 64;  // connections in the making: fewer than any backlog

void await(const Descriptor& socket, short event) {
  pollfd waiting{.fd = socket.get(), .events = event, .revents = 0};
  if (poll(&waiting, 1, 30'000) != 1) throw std::runtime_error("a connection was not answered within 30 s");
}

// Sends into all of them until for two seconds nobody takes anything. Gives the bytes taken.
std::uint64_t fill_all(const std::vector<Descriptor>& sockets, double seconds) {
  const std::vector<char> bytes(64 * 1024, 'x');
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  std::vector<pollfd> waiting;
  for (const Descriptor& socket : sockets)
    waiting.push_back({.fd = socket.get(), .events = POLLOUT, .revents = 0});
  std::uint64_t taken = 0;
  while (now_ns() < until && poll(waiting.data(), waiting.size(), 2000) > 0) {
    for (pollfd& at : waiting) {
      if (!at.revents) continue;
      ssize_t sent = send(at.fd, bytes.data(), bytes.size(), 0);
      if (sent < 0 && errno != EAGAIN) fail("send");
      if (sent > 0) taken += static_cast<std::uint64_t>(sent);
    }
  }
  return taken;
}

}  // namespace

void hold(const Words& words) {
  std::vector<Address> to;
  for (std::uint16_t port : words.ports("ports")) to.push_back(parse_address(words.text("to"), port));
  const std::size_t flows = words.number("flows");
  const bool exchange = words.number("exchange", 0) != 0;
  std::vector<Descriptor> sockets;
  sockets.reserve(flows);
  while (sockets.size() < flows) {
    const std::size_t first = sockets.size();
    for (std::size_t i = first; i < std::min(flows, first + kAtOnce); ++i)
      sockets.push_back(start_connect(to[i % to.size()], nullptr));
    for (std::size_t i = first; i < sockets.size(); ++i) {
      await(sockets[i], POLLOUT);
      if (exchange && send(sockets[i].get(), "?", 1, 0) != 1) fail("send");
    }
    for (std::size_t i = first; exchange && i < sockets.size(); ++i) {
      await(sockets[i], POLLIN);
      char byte = 0;
      if (recv(sockets[i].get(), &byte, 1, 0) != 1) fail("recv");
    }
  }
  std::printf("{\"held\": %zu}\n", sockets.size());
  std::fflush(stdout);
  if (words.number("fill", 0) != 0) {
    std::printf("{\"filled\": %llu}\n", static_cast<unsigned long long>(
                                            fill_all(sockets, static_cast<double>(words.number("fill")))));
    std::fflush(stdout);
  }
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  for (Descriptor& socket : sockets) close_by_reset(socket);
}

}  // namespace bench
