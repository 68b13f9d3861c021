// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of a TCP connection (TCP_INFO, TCP_SAVED_SYN). Apart from Asio, whose TCP header and
// the kernel's do not go together.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace longhaul::probe {

struct TcpFacts {
  unsigned mss = 0;         // bytes of a segment without timestamps' twelve
  double rtt_us = 0;        // smoothed
  double least_rtt_us = 0;  // 0: unknown
  std::uint64_t sent = 0;   // bytes, what was sent again included
  std::uint64_t again = 0;  // of these
  bool timestamps = false;
};
TcpFacts tcp_facts(int socket);
void keep_syns(int listener);                  // from now on, for saved_syn of what it accepts
std::vector<std::byte> saved_syn(int socket);  // empty: not kept
std::string congestion_control(int socket);

}  // namespace longhaul::probe
