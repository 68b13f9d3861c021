// SPDX-License-Identifier: Apache-2.0
// Raw sockets of one protocol each: the kernel writes the IP header, with the hop limit and without
// fragmenting.
#include "tools/probe/prober.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>

namespace longhaul::probe {
namespace {

constexpr std::uint16_t kUdpPort = 33434;  // the port of traceroute's probes, normally closed
constexpr std::uint16_t kTcpPort = 443;

[[noreturn]] void trouble(const std::string& what) { throw Trouble(what + ": " + std::strerror(errno)); }

template <class T>
void set(int descriptor, int level, int name, const T& value, const char* what) {
  if (::setsockopt(descriptor, level, name, &value, sizeof value) != 0)
    trouble(std::string("cannot set ") + what);
}

Descriptor open_raw(int domain, int protocol) {
  Descriptor opened{::socket(domain, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)};
  if (opened.get() < 0) {
    if (errno == EPERM || errno == EACCES)
      throw Trouble(
          "raw sockets need root: run it as root, or run `setcap cap_net_raw+ep` as root once "
          "on this program");
    trouble("cannot open a raw socket");
  }
  return opened;
}

void attach(int descriptor, std::vector<sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  set(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, filter, "a filter");
}

// This socket only sends: nothing is to be kept for it.
void take_nothing(int descriptor) { attach(descriptor, {BPF_STMT(BPF_RET | BPF_K, 0)}); }

// Of all TCP this host receives, what is for one port.
void take_port(int descriptor, Family family, std::uint16_t port) {
  std::vector<sock_filter> program;
  if (family == Family::v4)
    program.push_back(BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0));
  else
    program.push_back(BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 0));
  program.push_back(BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0xffff));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  attach(descriptor, std::move(program));
}

double micros_between(const timespec& from, const timespec& to) {
  return static_cast<double>(to.tv_sec - from.tv_sec) * 1e6 +
         static_cast<double>(to.tv_nsec - from.tv_nsec) / 1e3;
}

}  // namespace

Endpoint resolve(const std::string& host, Wanted wanted) {
  addrinfo hints{};
  hints.ai_family = wanted == Wanted::v4 ? AF_INET : wanted == Wanted::v6 ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0)
    throw Trouble("'" + host + "' has no " +
                  (wanted == Wanted::any  ? ""
                   : wanted == Wanted::v4 ? "IPv4 "
                                          : "IPv6 ") +
                  "address: " + ::gai_strerror(error));
  Endpoint endpoint;
  std::memcpy(&endpoint.address, found->ai_addr, found->ai_addrlen);
  endpoint.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return endpoint;
}

std::string text_of(const Endpoint& endpoint) {
  std::array<char, NI_MAXHOST> text{};
  if (endpoint.size == 0 ||
      ::getnameinfo(endpoint.raw(), endpoint.size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "?";
  return text.data();
}

Address bytes_of(const Endpoint& endpoint) {
  Address bytes{};
  if (endpoint.family() == Family::v4)
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(endpoint.raw())->sin_addr, 4);
  else
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(endpoint.raw())->sin6_addr, 16);
  return bytes;
}

void set_port(Endpoint& endpoint, std::uint16_t port) {
  if (endpoint.family() == Family::v4)
    reinterpret_cast<sockaddr_in*>(endpoint.raw())->sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6*>(endpoint.raw())->sin6_port = htons(port);
}

Prober::Prober(const Endpoint& to, Kind kind, std::uint16_t port, const Stop& stop) : to_(to), stop_(stop) {
  const bool v4 = to.family() == Family::v4;
  const int domain = v4 ? AF_INET : AF_INET6;
  flow_.family = to.family();
  flow_.kind = kind;
  flow_.to = bytes_of(to);
  flow_.to_port = port != 0 ? port : kind == Kind::tcp ? kTcpPort : kUdpPort;
  set_port(to_, flow_.to_port);

  // Which of our addresses is used, and what the interface takes.
  Endpoint from;
  from.size = sizeof from.address;
  const Descriptor scout{::socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (::connect(scout.get(), to_.raw(), to_.size) != 0) trouble("no route to " + text_of(to_));
  if (::getsockname(scout.get(), from.raw(), &from.size) != 0) trouble("no local address");
  socklen_t size = sizeof mtu_;
  int mtu = 1500;
  size = sizeof mtu;
  if (::getsockopt(scout.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU : IPV6_MTU, &mtu, &size) == 0)
    mtu_ = static_cast<unsigned>(mtu);
  flow_.from = bytes_of(from);

  // A port of our own, bound and never used by the kernel, so that a SYN-ACK is answered by a reset.
  set_port(from, 0);
  holder_ = Descriptor{::socket(domain, (kind == Kind::tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0)};
  if (::bind(holder_.get(), from.raw(), from.size) != 0) trouble("cannot bind a port");
  Endpoint held;
  held.size = sizeof held.address;
  ::getsockname(holder_.get(), held.raw(), &held.size);
  flow_.from_port = ntohs(v4 ? reinterpret_cast<sockaddr_in*>(held.raw())->sin_port
                             : reinterpret_cast<sockaddr_in6*>(held.raw())->sin6_port);
  if (kind != Kind::tcp) take_nothing(holder_.get());

  sender_ = open_raw(domain, protocol_of(flow_.family, kind));
  take_nothing(sender_.get());
  errors_ = open_raw(domain, v4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6});
  if (!v4) {
    icmp6_filter filter;
    ICMP6_FILTER_SETBLOCKALL(&filter);
    for (const int type : {1, 2, 3, 129}) ICMP6_FILTER_SETPASS(type, &filter);
    set(errors_.get(), IPPROTO_ICMPV6, ICMP6_FILTER, filter, "a filter");
  }
  set(errors_.get(), SOL_SOCKET, SO_TIMESTAMPNS, int{1}, "time stamps");
  if (kind == Kind::tcp) {
    answers_ = open_raw(domain, IPPROTO_TCP);
    take_port(answers_.get(), flow_.family, flow_.from_port);
    set(answers_.get(), SOL_SOCKET, SO_TIMESTAMPNS, int{1}, "time stamps");
  }
  if (v4)
    set(sender_.get(), IPPROTO_IP, IP_MTU_DISCOVER, int{IP_PMTUDISC_PROBE}, "path MTU search");
  else
    set(sender_.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, int{IPV6_PMTUDISC_PROBE}, "path MTU search");
  if (::bind(sender_.get(), from.raw(), from.size) != 0) trouble("cannot send from the local address");
  set_port(to_, 0);  // what a raw socket of IPv6 demands
  id_ = static_cast<std::uint16_t>(std::random_device{}());
}

std::uint16_t Prober::next_id() {
  do ++id_;
  while (id_ == 0 || id_ == 0xffff);
  return id_;
}

Outcome Prober::probe(unsigned hop_limit, unsigned ip_bytes, std::chrono::nanoseconds most) {
  const std::uint16_t id = next_id();
  return exchange(hop_limit, id, make_probe(flow_, id, ip_bytes), most);
}

Outcome Prober::syn(unsigned hop_limit, const TcpOptions& options, std::chrono::nanoseconds most) {
  const std::uint16_t id = next_id();
  return exchange(hop_limit, id, make_syn(flow_, id, options), most);
}

bool Prober::send(unsigned hop_limit, Bytes packet) {
  const bool v4 = flow_.family == Family::v4;
  set(sender_.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_UNICAST_HOPS,
      static_cast<int>(hop_limit), "the hop limit");
  if (::sendto(sender_.get(), packet.data(), packet.size(), 0, to_.raw(), to_.size) < 0) {
    if (errno == EMSGSIZE) return false;
    if (errno == EPERM || errno == EACCES) throw Trouble("this host's own firewall blocks the probes");
    if (errno != ENOBUFS && errno != EAGAIN) trouble("cannot send to " + text_of(to_));
  }
  return true;
}

void Prober::wait_until(std::chrono::steady_clock::time_point deadline) {
  const std::chrono::nanoseconds left = deadline - std::chrono::steady_clock::now();
  const auto nanos = std::max<std::chrono::nanoseconds::rep>(0, left.count());
  pollfd waits[3] = {
      {stop_.descriptor(), POLLIN, 0}, {errors_.get(), POLLIN, 0}, {answers_.get(), POLLIN, 0}};
  const timespec time{nanos / 1'000'000'000, nanos % 1'000'000'000};
  if (::ppoll(waits, 3, &time, nullptr) < 0 && errno != EINTR) trouble("cannot wait for answers");
}

Outcome Prober::exchange(unsigned hop_limit, std::uint16_t id, Bytes packet, std::chrono::nanoseconds most) {
  if (stop_.is_requested()) return {Fate::interrupted};
  const auto deadline = std::chrono::steady_clock::now() + most;
  timespec sent{};
  ::clock_gettime(CLOCK_REALTIME, &sent);
  if (!send(hop_limit, packet)) return {Fate::refused};
  while (true) {
    for (const int descriptor : {errors_.get(), answers_.get()})
      while (descriptor >= 0) {
        const auto outcome = take(descriptor, sent);
        if (!outcome) break;
        if (outcome->fate == Fate::answered && outcome->answer.id == id) return *outcome;
      }
    if (stop_.is_requested()) return {Fate::interrupted};
    if (std::chrono::steady_clock::now() >= deadline) return {Fate::silent};
    wait_until(deadline);
  }
}

unsigned Prober::burst(unsigned hop_limit, unsigned ip_bytes, unsigned count, std::chrono::nanoseconds most) {
  std::set<std::uint16_t> waiting;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint16_t id = next_id();
    if (send(hop_limit, make_probe(flow_, id, ip_bytes))) waiting.insert(id);
  }
  const auto deadline = std::chrono::steady_clock::now() + most;
  unsigned answered = 0;
  while (!waiting.empty() && !stop_.is_requested() && std::chrono::steady_clock::now() < deadline) {
    wait_until(deadline);
    for (const int descriptor : {errors_.get(), answers_.get()})
      while (descriptor >= 0) {
        const auto outcome = take(descriptor, {});
        if (!outcome) break;
        if (outcome->fate == Fate::answered)
          answered += static_cast<unsigned>(waiting.erase(outcome->answer.id));
      }
  }
  return answered;
}

// Nothing when nothing is left to read; an outcome that is not `answered` for what was not ours.
std::optional<Outcome> Prober::take(int descriptor, timespec sent) {
  std::array<std::byte, 65536> room;
  Outcome outcome;
  iovec part{room.data(), room.size()};
  alignas(cmsghdr) std::array<char, 256> control;
  msghdr message{};
  message.msg_name = outcome.from.raw();
  message.msg_namelen = sizeof outcome.from.address;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(descriptor, &message, 0);
  if (size < 0) return std::nullopt;
  outcome.from.size = message.msg_namelen;
  timespec received{};
  ::clock_gettime(CLOCK_REALTIME, &received);  // the kernel's stamp is better, and nearly always there
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item))
    if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SO_TIMESTAMPNS)
      std::memcpy(&received, CMSG_DATA(item), sizeof received);
  const Bytes packet(room.data(), static_cast<std::size_t>(size));
  const bool tcp = descriptor == answers_.get();
  const auto answer = tcp ? read_tcp(flow_, packet) : read_icmp(flow_, packet);
  if (!answer) return outcome;
  if (tcp && bytes_of(outcome.from) != flow_.to) return outcome;
  outcome.fate = Fate::answered;
  outcome.answer = *answer;
  outcome.us = micros_between(sent, received);
  return outcome;
}

}  // namespace longhaul::probe
