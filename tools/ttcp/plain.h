// SPDX-License-Identifier: Apache-2.0
// ttcp itself: one transfer to or from a peer that may be any ttcp, with its options, its words and its
// marks. Leaves sweeps to sweep.h.
#pragma once
#include <string>

#include "tools/ttcp/sockets.h"

namespace longhaul::ttcp {

struct PlainOptions {
  bool transmit = false;
  std::string host;  // to send to; of a receiver: the address to listen at, "" for all
  Protocol protocol = Protocol::tcp;
  Family family = Family::any;
  std::uint16_t port = 5001;
  std::uint32_t buffer_bytes = 8192;
  std::uint64_t buffers = 2048;
  bool pattern = false;  // -s: a pattern and to nowhere, not standard input and output
  std::uint32_t alignment = 16384;
  std::uint32_t offset = 0;
  SocketOptions socket;
  bool full_blocks = false;  // -B
  bool touch = false;        // -T
  bool continuous = false;   // -c
  bool concurrent = false;   // -R
  bool verbose = false;
  char format = 'K';
  std::uint32_t write_delay_ms = 0;                 // -w
  Duration pause = std::chrono::milliseconds{200};  // before UDP's end marks
  Duration silence = std::chrono::seconds{5};       // of a UDP sender, after which its marks count as lost
  Duration patience = std::chrono::seconds{30};     // for a TCP connection
};

// Statistics go to standard error, in ttcp's words. An interrupted transfer's, too, and then Interrupted is
// thrown; other ends that are not the right one are Trouble.
void run_plain(const PlainOptions& options, const Stop& stop);

// "12.34 MB" for bytes: k, m, g are bits, K, M, G bytes, of 1024 as ttcp counts both.
std::string to_amount(double bytes, char format);

}  // namespace longhaul::ttcp
