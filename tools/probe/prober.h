// SPDX-License-Identifier: Apache-2.0
// Sends one probe at a time and waits for its answer: the only place with raw sockets. Leaves which probes to
// send to discover.h and sweep.h.
#pragma once
#include <sys/socket.h>

#include <chrono>
#include <string>

#include "tools/measuring/stop.h"
#include "tools/measuring/trouble.h"
#include "tools/probe/answer.h"
#include "tools/wan/descriptor.h"

namespace longhaul::probe {

using measuring::Stop;
using measuring::Trouble;
using wan::Descriptor;

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  Family family() const { return address.ss_family == AF_INET6 ? Family::v6 : Family::v4; }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&address); }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&address); }
};
enum class Wanted { any, v4, v6 };
Endpoint resolve(const std::string& host, Wanted wanted);  // throws Trouble
std::string text_of(const Endpoint& endpoint);
Address bytes_of(const Endpoint& endpoint);
void set_port(Endpoint& endpoint, std::uint16_t port);

enum class Fate { answered, silent, refused, interrupted };  // refused: larger than the interface takes

struct Outcome {
  Fate fate = Fate::silent;
  Answer answer{};
  Endpoint from{};
  double us = 0;  // from before the call that sends to the kernel's stamp of the answer
};

class Prober {
 public:
  // Throws Trouble without the right to open raw sockets, or without a route.
  Prober(const Endpoint& to, Kind kind, std::uint16_t port, const Stop& stop);
  Outcome probe(unsigned hop_limit, unsigned ip_bytes, std::chrono::nanoseconds most);
  Outcome syn(unsigned hop_limit, const TcpOptions& options, std::chrono::nanoseconds most);
  // Many at once; how many of them were answered.
  unsigned burst(unsigned hop_limit, unsigned ip_bytes, unsigned count, std::chrono::nanoseconds most);
  const Flow& flow() const { return flow_; }
  unsigned interface_mtu() const { return mtu_; }
  unsigned least_bytes() const { return probe::least_bytes(flow_.family, flow_.kind); }

 private:
  Outcome exchange(unsigned hop_limit, std::uint16_t id, Bytes packet, std::chrono::nanoseconds most);
  bool send(unsigned hop_limit, Bytes packet);  // false: larger than the interface takes
  void wait_until(std::chrono::steady_clock::time_point deadline);
  std::optional<Outcome> take(int descriptor, timespec sent);
  std::uint16_t next_id();

  Endpoint to_;
  Flow flow_;
  const Stop& stop_;
  Descriptor holder_;  // keeps our port from others
  Descriptor sender_;
  Descriptor errors_;
  Descriptor answers_;  // of TCP; ICMP's come with the errors
  unsigned mtu_ = 1500;
  std::uint16_t id_ = 0;
};

}  // namespace longhaul::probe
