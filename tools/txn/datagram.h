// SPDX-License-Identifier: Apache-2.0
// Datagrams of the transactions over UDP, between bytes and fields. Leaves what they do to windows.h.
//
//   mark 0xE7 (1)  flags (1)  burst (2)  index (2)  key (8)  connection (4)  message (4)  window (4)  size
//   (4) data: bytes of the message.  Negative acknowledgement: the indices that are missing, two bytes each.
// Flags: bits 0-1 kind, bit 2 direction, bit 3 asks; the others are zero. Big-endian.
#pragma once
#include <optional>
#include <vector>

#include "codecs/byte_writer.h"
#include "tools/txn/content.h"

namespace longhaul::txn {

inline constexpr std::size_t kDatagramHeader = 30;
inline constexpr std::uint32_t kMostDatagramsInWindow = 4096;

enum class Kind : std::uint8_t { data = 1, acknowledgement = 2, negative = 3 };

struct Datagram {
  Kind kind = Kind::data;
  Direction direction = Direction::request;  // of the message, for acknowledgements too
  bool asks = false;                         // data: the last of a burst; the receiver answers it
  std::uint16_t burst = 0;       // how often (part of) this window was sent before; an answer repeats it
  std::uint16_t index = 0;       // data: within its window
  std::uint64_t key = 0;         // of the pair
  std::uint32_t connection = 0;  // EFT-SHORT opens one for each transaction
  std::uint32_t message = 0;     // transaction within the connection
  std::uint32_t window = 0;      // within the message
  std::uint32_t size = 0;        // of the message
  Bytes payload;                 // data; borrowed
  std::vector<std::uint16_t> missing;  // negative; ascending, not empty
};

void encode(const Datagram& datagram, Buffer& out);  // replaces what is in `out`
// Nothing: no datagram of ours.
std::optional<Datagram> parse_datagram(Bytes bytes);

}  // namespace longhaul::txn
