// SPDX-License-Identifier: Apache-2.0
// Datagrams to a Unix socket. A message that cannot be sent is dropped: the service manager acts on its own
// timeouts.
#include "proxy/process/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace longhaul::process {
namespace {

std::optional<long long> number_in(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return std::nullopt;
  const std::string_view text(value);
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A path, or "@" and the name of an abstract socket.
int connected_to(std::string_view name) {
  sockaddr_un address{};
  if (name.size() < 2 || name.size() >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@')) return -1;
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  if (descriptor >= 0) ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (descriptor < 0 || ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), size) == 0)
    return descriptor;
  ::close(descriptor);
  return -1;
}

}  // namespace

ServiceManager::ServiceManager() {
  const char* name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  socket_ = connected_to(name);
  // The variables are inherited by child processes of the service, which must not use them.
  const auto limit = number_in("WATCHDOG_USEC");
  if (!limit || *limit <= 0 || number_in("WATCHDOG_PID").value_or(::getpid()) != ::getpid()) return;
  alive_period_ = std::chrono::microseconds(std::max(*limit / 2, 1'000LL));
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

// All services share systemd's queue, which may be full for a moment. A state that is lost there would never
// be known; another sign of life comes soon.
void ServiceManager::send(const std::string& message, bool may_be_lost) const {
  const int flags = MSG_NOSIGNAL | (may_be_lost ? MSG_DONTWAIT : 0);
  // A signal interrupts the wait, and is handled after it.
  while (socket_ >= 0 && ::send(socket_, message.data(), message.size(), flags) < 0 && errno == EINTR) {
  }
}

void ServiceManager::ready(const std::string& status) const { send("READY=1\nSTATUS=" + status); }

void ServiceManager::reloading() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  send("RELOADING=1\nMONOTONIC_USEC=" +
       std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
}

void ServiceManager::stopping() const { send("STOPPING=1\nSTATUS=Stopping"); }

void ServiceManager::alive() const { send("WATCHDOG=1", true); }

}  // namespace longhaul::process
