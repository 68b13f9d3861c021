// SPDX-License-Identifier: Apache-2.0
// The figures of RFC 6349 for TCP between this host and an agent: transfer-time ratio, TCP efficiency, buffer
// delay; what they rest on (capacity, round trip, window) beside them. The arithmetic is pure.
#pragma once
#include <ostream>

#include "tools/probe/host.h"
#include "tools/probe/transfer.h"

namespace longhaul::probe {

enum class Direction { there, back, both };

struct TcpRequest {
  std::string agent;  // HOST[:PORT]
  std::string token;
  std::chrono::milliseconds time{10'000};
  Direction direction = Direction::both;
  double rate_bits = 0;  // 0: measured by trains of UDP packets
};

struct Figures {
  double capacity_bits = 0;    // IP
  double achievable_bits = 0;  // what is left of it for TCP's payload
  double base_rtt_us = 0;
  double window_bytes = 0;  // capacity × round trip
  double ideal_seconds = 0;
  double transfer_time_ratio = 0;  // 1: as fast as possible
  double efficiency = 0;           // share of the bytes that were sent once only
  double buffer_delay = 0;         // how much longer the round trip was meanwhile; 1: twice as long
};
Figures figures_of(double capacity_bits, double base_rtt_us, unsigned ip_header, const Sent& sent,
                   const Received& received);

// Everything that was found, as JSON; one line of it is what `neighbours` collects. Throws Trouble.
asio::awaitable<boost::json::object> measure_tcp(TcpRequest request);
void print_tcp(const boost::json::object& found, std::ostream& out);

}  // namespace longhaul::probe
