// SPDX-License-Identifier: Apache-2.0
#include "tools/sctp/association.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <usrsctp.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace longhaul::sctp {
namespace {

constexpr int kRawBufferBytes = 8 << 20;  // the stack's own 256 KiB are 2 ms of a fast line

StackSettings settings_in_force;  // usrsctp, too, is one for the process

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// usrsctp gives no access to its raw sockets; those of this process are its own.
// Whether there are any.
bool enlarge_raw_sockets() {
  bool found = false;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return false;
  while (const dirent* entry = ::readdir(folder)) {
    const int descriptor = std::atoi(entry->d_name);
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_RAW) {
      found = true;
      ::setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &kRawBufferBytes, sizeof kRawBufferBytes);
    }
  }
  ::closedir(folder);
  return found;
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address parse(const Endpoint& endpoint) {
  Address found;
  auto* four = reinterpret_cast<sockaddr_in*>(&found.storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&found.storage);
  if (::inet_pton(AF_INET, endpoint.address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(endpoint.port);
    found.size = sizeof *four;
  } else if (::inet_pton(AF_INET6, endpoint.address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(endpoint.port);
    found.size = sizeof *six;
  } else {
    throw std::runtime_error("'" + endpoint.address + "' is not an IPv4 or IPv6 address");
  }
  return found;
}

template <class T>
void set_option(Socket* socket, int level, int option, const T& value, const char* what) {
  if (usrsctp_setsockopt(socket, level, option, &value, sizeof value) != 0) fail(what);
}

Socket* open(int family) {
  Socket* socket = usrsctp_socket(family, SOCK_STREAM, IPPROTO_SCTP, nullptr, nullptr, 0, nullptr);
  if (socket == nullptr) fail("no SCTP socket");
  const int bytes = static_cast<int>(settings_in_force.buffer_bytes);
  set_option(socket, SOL_SOCKET, SO_SNDBUF, bytes, "send buffer");
  set_option(socket, SOL_SOCKET, SO_RCVBUF, bytes, "receive buffer");
  // Without this the stack takes every path for one of 1500 bytes. It wants the bytes after the
  // headers of IP and SCTP.
  sctp_paddrparams path{};
  path.spp_address.ss_family = static_cast<sa_family_t>(family);  // any address of it
  path.spp_flags = SPP_PMTUD_DISABLE;
  path.spp_pathmtu = static_cast<std::uint32_t>(settings_in_force.mtu - (family == AF_INET ? 20 : 40) - 12);
  set_option(socket, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, path, "path MTU");
  set_option(socket, IPPROTO_SCTP, SCTP_NODELAY, int{1}, "SCTP_NODELAY");
  set_option(socket, IPPROTO_SCTP, SCTP_RECVRCVINFO, int{1}, "SCTP_RECVRCVINFO");
  return socket;
}

}  // namespace

Stack::Stack(const StackSettings& settings) {
  settings_in_force = settings;
  usrsctp_init(0, nullptr, nullptr);
  // What an accepted association begins with is taken from here.
  usrsctp_sysctl_set_sctp_sendspace(static_cast<std::uint32_t>(settings.buffer_bytes));
  usrsctp_sysctl_set_sctp_recvspace(static_cast<std::uint32_t>(settings.buffer_bytes));
  usrsctp_sysctl_set_sctp_blackhole(2);
  // A host that is not there is found out in 12 seconds, not in minutes.
  usrsctp_sysctl_set_sctp_init_rtx_max_default(4);
  usrsctp_sysctl_set_sctp_init_rto_max_default(3000);
  usrsctp_sysctl_set_sctp_rto_initial_default(1000);
  if (!enlarge_raw_sockets()) throw std::runtime_error("raw sockets need root or CAP_NET_RAW");
}

Stack::~Stack() {
  // It refuses while an association is not quite gone.
  for (int attempt = 0; attempt < 100 && usrsctp_finish() != 0; ++attempt)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

Stack::Counters Stack::counters() {
  sctpstat found{};
  usrsctp_get_stat(&found);
  return {.packets_sent = found.sctps_sendpackets,
          .data_chunks_sent = found.sctps_senddata,
          .data_chunks_sent_again = found.sctps_sendretransdata,
          .timeouts = found.sctps_timodata};
}

void Association::Close::operator()(Socket* socket) const { usrsctp_close(socket); }

Association Association::connect(const std::optional<std::string>& from, const Endpoint& to) {
  Address there = parse(to);
  Association made{open(there.storage.ss_family)};
  if (from) {
    Address here = parse({.address = *from, .port = 0});
    if (usrsctp_bind(made.socket_.get(), here.get(), here.size) != 0) fail("binding to " + *from);
  }
  if (usrsctp_connect(made.socket_.get(), there.get(), there.size) != 0) fail("connecting to " + to.address);
  return made;
}

bool Association::send(Kind kind, std::span<const std::byte> message) {
  sctp_sndinfo info{};
  info.snd_ppid = htonl(static_cast<std::uint32_t>(kind));
  return usrsctp_sendv(socket_.get(), message.data(), message.size(), nullptr, 0, &info, sizeof info,
                       SCTP_SENDV_SNDINFO, 0) == static_cast<ssize_t>(message.size());
}

std::optional<Message> Association::receive(std::span<std::byte> room) {
  sctp_rcvinfo info{};
  socklen_t info_size = sizeof info;
  unsigned info_type = 0;
  int flags = 0;
  const ssize_t got = usrsctp_recvv(socket_.get(), room.data(), room.size(), nullptr, nullptr, &info,
                                    &info_size, &info_type, &flags);
  if (got <= 0) return std::nullopt;
  const bool is_control =
      info_type == SCTP_RECVV_RCVINFO && ntohl(info.rcv_ppid) == static_cast<std::uint32_t>(Kind::control);
  return Message{.kind = is_control ? Kind::control : Kind::data, .bytes = static_cast<std::size_t>(got)};
}

void Association::abort() {
  sctp_sndinfo info{};
  info.snd_flags = SCTP_ABORT;
  usrsctp_sendv(socket_.get(), nullptr, 0, nullptr, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
}

std::size_t Association::largest_unfragmented() const {
  sctp_status found{};
  socklen_t size = sizeof found;
  if (usrsctp_getsockopt(socket_.get(), IPPROTO_SCTP, SCTP_STATUS, &found, &size) != 0) fail("SCTP_STATUS");
  return found.sstat_fragmentation_point;
}

Listener::Listener(const Endpoint& at) {
  Address here = parse(at);
  socket_.reset(open(here.storage.ss_family));
  if (usrsctp_bind(socket_.get(), here.get(), here.size) != 0)
    fail("binding to " + at.address + " port " + std::to_string(at.port));
  if (usrsctp_listen(socket_.get(), 1) != 0) fail("listening");
}

Association Listener::accept() {
  Socket* accepted = usrsctp_accept(socket_.get(), nullptr, nullptr);
  if (accepted == nullptr) fail("accepting");
  return Association{accepted};
}

}  // namespace longhaul::sctp
