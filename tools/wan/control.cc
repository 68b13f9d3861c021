// SPDX-License-Identifier: Apache-2.0
// Both ends of the control socket.
#include "tools/wan/control.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <thread>

namespace longhaul::wan {
namespace {

constexpr std::size_t kMaxClients = 16;
constexpr std::size_t kMaxRequest = 4096;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw std::runtime_error("the control path is too long: " + path);
  path.copy(address.sun_path, path.size());
  return address;
}

bool connects(int socket, const sockaddr_un& address) {
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Descriptor stream_socket(int flags) {
  return Descriptor{must(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "control socket")};
}

}  // namespace

ControlServer::ControlServer(std::string path) : path_(std::move(path)) {
  const sockaddr_un address = address_of(path_);
  if (connects(stream_socket(0).get(), address))
    throw std::runtime_error("another emulator already uses " + path_);
  struct stat found {};
  if (::lstat(path_.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) ::unlink(path_.c_str());
  listener_ = stream_socket(SOCK_NONBLOCK);
  const mode_t before = ::umask(0177);
  const int bound = ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(before);
  must(bound, "control socket " + path_);
  must(::listen(listener_.get(), kMaxClients), "control socket " + path_);
  epoll_ = Descriptor{must(::epoll_create1(EPOLL_CLOEXEC), "epoll")};
  epoll_event event{};
  event.events = EPOLLIN;
  must(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event), "epoll");
}

ControlServer::~ControlServer() { ::unlink(path_.c_str()); }

void ControlServer::accept_one() {
  Descriptor socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  if (!socket) return;
  if (clients_.size() == kMaxClients) clients_.erase(clients_.begin());  // the one that has dawdled longest
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0)
    clients_.push_back({std::move(socket), {}});
}

bool ControlServer::finished(Client& client, const Handler& handler) {
  std::array<char, kMaxRequest> buffer;
  const ssize_t size = ::recv(client.socket.get(), buffer.data(), buffer.size(), 0);
  if (size < 0) return errno != EAGAIN && errno != EINTR;
  client.request.append(buffer.data(), static_cast<std::size_t>(size));
  const auto end = client.request.find('\n');
  if (end == std::string::npos) return size == 0 || client.request.size() > kMaxRequest;
  const std::string answer = handler(std::string_view(client.request).substr(0, end)) + "\n";
  // A few kilobytes always fit an empty socket buffer; a client that hung up does not read them.
  [[maybe_unused]] const auto sent = ::send(client.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  return true;
}

void ControlServer::serve(const Handler& handler) {
  accept_one();
  std::erase_if(clients_, [&](Client& client) { return finished(client, handler); });
}

std::string ask(const std::string& path, std::string_view command, std::chrono::milliseconds patience) {
  const sockaddr_un address = address_of(path);
  const auto give_up = std::chrono::steady_clock::now() + patience;
  Descriptor socket = stream_socket(0);
  while (!connects(socket.get(), address)) {
    if (std::chrono::steady_clock::now() >= give_up)
      throw std::runtime_error("no emulator answers at " + path);
    std::this_thread::sleep_for(
        std::chrono::milliseconds{5});  // a socket file's appearance cannot be awaited here
    socket = stream_socket(0);
  }
  const std::string line = std::string(command) + "\n";
  must(static_cast<int>(::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL)),
       "control socket " + path);
  std::string answer;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(size));
  }
  if (!answer.ends_with('\n'))
    throw std::runtime_error("the emulator at " + path + " exited before it answered");
  answer.pop_back();
  return answer;
}

}  // namespace longhaul::wan
