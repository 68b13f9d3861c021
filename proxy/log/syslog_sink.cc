// SPDX-License-Identifier: Apache-2.0
#include "proxy/log/syslog_sink.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace longhaul::log {

using namespace std::chrono_literals;

namespace {

constexpr auto kRetry = 5s;  // after a failed connection; lines are lost meanwhile
constexpr auto kComplaint = 60s;
// How long a line waits for room: the queue of a local socket holds only ten datagrams.
constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};

int open_socket(int family) {
  const int made = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made >= 0) ::setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  return made;
}

}  // namespace

SyslogSink::SyslogSink(config::Syslog to) : to_(std::move(to)) {}

SyslogSink::~SyslogSink() { disconnect(); }

void SyslogSink::sink_it_(const spdlog::details::log_msg& message) {
  // A restarted daemon has another socket: try once more with a new connection.
  for (int tries = 0; tries < 2; ++tries) {
    if (socket_ < 0 && !connect()) return lose(errno);
    if (::send(socket_, message.payload.data(), message.payload.size(), MSG_NOSIGNAL) >= 0) {
      detail::syslog_sent.fetch_add(1, std::memory_order_relaxed);
      detail::syslog_fails.store(false, std::memory_order_relaxed);
      return;
    }
    if (errno == EMSGSIZE || errno == ENOBUFS) return lose(errno);
    const int error = errno;
    disconnect();
    errno = error;
    if (error == EAGAIN || error == EWOULDBLOCK) break;  // kPatience has passed
  }
  last_error_ = errno;
  next_try_ = Clock::now() + kRetry;
  lose(errno);
}

bool SyslogSink::connect() {
  if (Clock::now() < next_try_) return errno = last_error_, false;
  if (to_.is_local() ? connect_local() : connect_network()) return true;
  last_error_ = errno;
  next_try_ = Clock::now() + kRetry;
  return false;
}

bool SyslogSink::connect_local() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, to_.path.data(), std::min(to_.path.size(), sizeof address.sun_path - 1));
  socket_ = open_socket(AF_UNIX);
  if (socket_ >= 0 && ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  const int error = errno;
  disconnect();
  errno = error;
  return false;
}

bool SyslogSink::connect_network() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(to_.host.host.c_str(), std::to_string(to_.host.port).c_str(), &hints, &found) != 0)
    return errno = EHOSTUNREACH, false;
  int error = EHOSTUNREACH;
  for (const addrinfo* each = found; each != nullptr && socket_ < 0; each = each->ai_next) {
    socket_ = open_socket(each->ai_family);
    if (socket_ >= 0 && ::connect(socket_, each->ai_addr, each->ai_addrlen) == 0) break;
    error = errno;
    disconnect();
  }
  ::freeaddrinfo(found);
  errno = error;
  return socket_ >= 0;
}

void SyslogSink::disconnect() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void SyslogSink::lose(int error) {
  detail::syslog_lost.fetch_add(1, std::memory_order_relaxed);
  detail::syslog_fails.store(true, std::memory_order_relaxed);
  if (Clock::now() < next_complaint_) return;
  next_complaint_ = Clock::now() + kComplaint;
  warn("syslog", {{"to", to_.to_text()}, {"reason", std::strerror(error)}, {"effect", "lines are missing in its log"}});
}

}  // namespace longhaul::log
