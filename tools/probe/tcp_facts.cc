// SPDX-License-Identifier: Apache-2.0
// Older kernels give a shorter structure; what they do not give is zero.
#include "tools/probe/tcp_facts.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace longhaul::probe {

TcpFacts tcp_facts(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  TcpFacts facts;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return facts;
  constexpr std::uint32_t kUnknown = 0xffffffff;
  facts.mss = info.tcpi_snd_mss;
  facts.rtt_us = info.tcpi_rtt;
  facts.least_rtt_us = info.tcpi_min_rtt == kUnknown ? 0 : info.tcpi_min_rtt;
  facts.sent = info.tcpi_bytes_sent;
  facts.again = info.tcpi_bytes_retrans;
  facts.timestamps = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
  return facts;
}

void keep_syns(int listener) {
  const int on = 1;
  (void)::setsockopt(listener, IPPROTO_TCP, TCP_SAVE_SYN, &on, sizeof on);
}

std::vector<std::byte> saved_syn(int socket) {
  std::vector<std::byte> syn(512);
  auto size = static_cast<socklen_t>(syn.size());
  if (::getsockopt(socket, IPPROTO_TCP, TCP_SAVED_SYN, syn.data(), &size) != 0) size = 0;
  syn.resize(size);
  return syn;
}

std::string congestion_control(int socket) {
  std::array<char, 32> name{};
  socklen_t size = name.size();
  if (::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return "?";
  return {name.data(), ::strnlen(name.data(), name.size())};
}

}  // namespace longhaul::probe
