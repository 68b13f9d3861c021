// SPDX-License-Identifier: Apache-2.0
// What a person may know about the link to one peer: a snapshot, returned by value.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace longhaul::link {

enum class LinkState : std::uint8_t { never_up, up, silent, down };

struct LinkStatus {
  std::string peer;
  LinkState state = LinkState::never_up;
  std::string carrier;         // "tcp", "udp", empty while there is none
  std::string remote_address;  // of the carrier
  std::string last_error;      // why the last attempt failed; empty: it did not
  std::chrono::microseconds smoothed_rtt{0};
  std::chrono::seconds state_age{0};
  std::uint64_t streams = 0;     // live on this link
  std::uint64_t bytes_sent = 0;  // on the carrier, TLS included
  std::uint64_t bytes_received = 0;
  std::uint64_t delivery_rate_bits = 0;  // measured; 0: not yet
  std::uint64_t credit_granted = 0;      // plain bytes the peer may still send
  std::uint64_t bytes_retained = 0;      // sent and not yet acknowledged by the peer's session
  std::uint64_t carriers_attached = 0;   // since start; more than one: the link was dialled again
};

}  // namespace longhaul::link
