// SPDX-License-Identifier: Apache-2.0
// Sends the packets of one test, one system call each as ttcp does. Leaves agreeing on the test to sweep.h.
#pragma once
#include "tools/ttcp/datagram.h"
#include "tools/ttcp/plan.h"
#include "tools/ttcp/sockets.h"

namespace longhaul::ttcp {

struct Sent {
  std::uint64_t packets = 0;
  double seconds = 0;
};

// When a test has sent enough.
struct Budget {
  std::uint64_t packets = 0;
  double least_seconds = 0;  // goes on with more packets until then
  double most_seconds = 0;   // 0: no bound; ends with fewer
  bool is_spent(std::uint64_t sent, double seconds) const {
    if (sent >= kMostPackets || (most_seconds > 0 && seconds >= most_seconds)) return true;
    return sent >= packets && seconds >= least_seconds;
  }
};

// Both throw Interrupted on a stop; send_tcp also PeerGone.
// Ends with the end of the stream; the last bytes may still be on their way.
Sent send_tcp(int socket, std::uint32_t payload_bytes, const Budget& budget, const Stop& stop);
// A start mark, then the packets; `payload_rate` in bits per second, 0: as fast as the host can. What a
// firewall refuses is a lost packet like others: whether the receiver lives, the control connection says.
Sent send_udp(int socket, std::uint32_t test, std::uint32_t payload_bytes, double payload_rate,
              const Budget& budget, const Stop& stop);
// Ignores a closed port: the other side has received one already.
void send_end_mark(int socket, std::uint32_t test);

// One datagram, waiting for room. Throws PeerGone where it is refused.
void send_datagram(int socket, Bytes datagram, const Stop& stop);
// All bytes, waiting for room; gives the number of system calls that moved some. Throws PeerGone.
std::uint64_t send_all(int socket, Bytes bytes, const Stop& stop);

// Printable characters over and over, as classic ttcp sends.
void fill_with_pattern(std::span<std::byte> buffer);

}  // namespace longhaul::ttcp
