// SPDX-License-Identifier: Apache-2.0
// The status of the link to one peer: a snapshot, returned by value.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/reduction/counters.h"

namespace longhaul::link {

enum class LinkState : std::uint8_t { never_up, up, silent, down };

struct UdpCounters {
  std::uint64_t packets_sent = 0, packets_received = 0;
  std::uint64_t packets_lost = 0, spurious_losses = 0;
  std::uint64_t packets_dropped = 0;                 // with our id, but not authentic, repeated, or malformed
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // UDP payload
  std::uint64_t repairs_sent = 0, repairs_received = 0, repairs_wasted = 0, repairs_late = 0;
  std::uint64_t symbols_recovered = 0;

  UdpCounters& operator+=(const UdpCounters& more) {
    for (auto count :
         {&UdpCounters::packets_sent, &UdpCounters::packets_received, &UdpCounters::packets_lost,
          &UdpCounters::spurious_losses, &UdpCounters::packets_dropped, &UdpCounters::bytes_sent,
          &UdpCounters::bytes_received, &UdpCounters::repairs_sent, &UdpCounters::repairs_received,
          &UdpCounters::repairs_wasted, &UdpCounters::repairs_late, &UdpCounters::symbols_recovered})
      this->*count += more.*count;
    return *this;
  }
};

// The UDP carrier with its newest keys; the counters cover all keys since start.
enum class UdpState : std::uint8_t { none, probing, up, failed };
struct UdpStatus : UdpCounters {
  UdpState state = UdpState::none;
  std::string remote_address;  // empty until a packet of the peer arrived
  std::chrono::microseconds smoothed_rtt{0};
  std::uint64_t datagram_bytes = 0;       // largest that the path is known to carry: UDP payload
  std::uint64_t pacing_rate_bits = 0;     // IP bits a second
  const char* rate_law =
      "";  // "configured", "limited" (the line carries less than configured), "measured"
  const char* rate_phase = "";            // of the rate control's probing
  std::uint64_t line_rate_bits = 0;       // estimate of our share of the line
  std::chrono::microseconds base_rtt{0};  // without a queue; 0: unknown yet
  std::chrono::microseconds queue{0};
  bool competes = false;                 // shares the line with traffic that fills queues
  bool policed = false;                  // the line drops excess packets instead of queueing them
  std::uint64_t delivery_rate_bits = 0;  // measured; 0: not yet
  double erasure_rate = 0;          // share of packets lost at random, as measured for error correction
  bool segments_in_kernel = false;  // UDP GSO works here, and is used
  bool drops_bursts = false;        // the path drops bursts, so packets are sent one by one
  bool unanswered = false;          // no UDP packet arrived since the link is up: probably filtered
  std::uint64_t fallbacks = 0;      // how often UDP became silent while it carried the link
  std::chrono::microseconds timer_lateness{0};  // mean lateness of the pacing timers
  std::chrono::microseconds worst_timer_lateness{0};
};

// The role of one of several paths to the peer ([[peer.path]]).
enum class PathRole : std::uint8_t { none, standby, carries, helps };
struct PathStatus {
  std::string name;
  PathRole role = PathRole::none;  // none: the path does not work; helps: carries bytes of bulk streams
  const char* reason = "";         // why it carries; empty for the other paths
  std::uint32_t cost = 1;
  UdpStatus udp;
};

// A module that the peer has in another version: flows do not use it.
struct UnlikeModule {
  std::string name;
  std::uint64_t here = 0, there = 0;  // versions; `there` is 0 if the peer lacks the module
};

struct LinkStatus {
  std::string peer;
  LinkState state = LinkState::never_up;
  std::string carrier;         // "tcp", "udp"; empty if there is none
  std::string remote_address;  // of the carrier
  std::string last_error;      // why the last attempt failed; empty if it succeeded
  std::chrono::microseconds smoothed_rtt{0};
  std::chrono::seconds state_age{0};
  std::uint64_t streams = 0;     // live on this link
  std::uint64_t bytes_sent = 0;  // on all carriers, TLS and packet headers included
  std::uint64_t bytes_received = 0;
  std::uint64_t delivery_rate_bits = 0;  // measured; 0: not yet
  std::uint64_t credit_granted = 0;      // plain bytes the peer may still send
  std::uint64_t bytes_retained = 0;      // sent and not yet acknowledged by the peer's session
  std::uint64_t carriers_attached = 0;   // TCP, since start; more than one: the link was re-established
  UdpStatus udp;                         // with several paths: of the one that carries; counters: the sum
  std::vector<PathStatus> paths;         // empty if the sides did not agree on any
  std::vector<UnlikeModule> unlike_modules;
  bool reduces = false;           // both sides encode and decode blocks
  reduction::Counters reduction;  // since start; sizes and fills of this session
};

}  // namespace longhaul::link
