// SPDX-License-Identifier: Apache-2.0
// Servers for many connections on one loop: `echo` gives every byte back, `stall` never reads, or sends to
// whoever does not.
#include <sys/epoll.h>

#include <cerrno>
#include <cstdio>
#include <unordered_map>
#include <vector>

#include "loads.h"
#include "sockets.h"

namespace bench {
namespace {

using Serve = bool (*)(int socket);  // false: the connection has ended

void watch(const Descriptor& loop, int socket, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = socket}};
  if (epoll_ctl(loop.get(), EPOLL_CTL_ADD, socket, &event) != 0) fail("epoll_ctl");
}

void serve_forever(const Words& words, std::uint32_t events, Serve serve) {
  std::vector<Descriptor> listeners;
  std::printf("{\"ports\": [");
  for (std::uint64_t i = 0; i < words.number("ports", 1); ++i) {
    listeners.push_back(listen_on(0));
    std::printf("%s%u", i == 0 ? "" : ", ", port_of(listeners.back()));
  }
  std::printf("]}\n");
  std::fflush(stdout);

  Descriptor loop(epoll_create1(EPOLL_CLOEXEC));
  for (const Descriptor& listener : listeners) watch(loop, listener.get(), EPOLLIN);
  const int last_listener = listeners.back().get();  // they were opened first: numbers up to here are theirs
  std::unordered_map<int, Descriptor> connections;
  std::vector<epoll_event> ready(256);
  while (true) {
    int count = epoll_wait(loop.get(), ready.data(), static_cast<int>(ready.size()), -1);
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    for (int i = 0; i < count; ++i) {
      int number = ready[static_cast<std::size_t>(i)].data.fd;
      if (number > last_listener) {
        if (!serve(number)) connections.erase(number);
        continue;
      }
      Descriptor socket(accept4(number, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) fail("accept");
      set_no_delay(socket);
      int accepted = socket.get();
      connections[accepted] = std::move(socket);
      watch(loop, accepted, events);
    }
  }
}

bool give_back(int socket) {
  char buffer[4096];
  ssize_t got = recv(socket, buffer, sizeof buffer, 0);
  if (got < 0) return errno == EAGAIN;
  return got > 0 && send(socket, buffer, static_cast<std::size_t>(got), 0) == got;
}

bool leave_alone(int) { return false; }  // called for a reset only

bool fill(int socket) {
  static const std::vector<char> kBytes(64 * 1024, 'x');
  while (true) {
    if (send(socket, kBytes.data(), kBytes.size(), 0) < 0) return errno == EAGAIN;
  }
}

}  // namespace

void echo(const Words& words) { serve_forever(words, EPOLLIN, give_back); }

void stall(const Words& words) {
  if (words.number("sends", 0) != 0)
    serve_forever(words, EPOLLOUT | EPOLLET, fill);
  else
    serve_forever(words, 0, leave_alone);  // resets are always told
}

}  // namespace bench
