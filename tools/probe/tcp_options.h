// SPDX-License-Identifier: Apache-2.0
// The options of a TCP header (RFC 9293 section 3.1, RFC 7323, RFC 2018): read from bytes of anyone, and
// written into the probe's own SYN. Leaves the rest of the header to packet.h and answer.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codecs/bytes.h"

namespace longhaul::probe {

struct Timestamps {
  std::uint32_t value = 0;
  std::uint32_t echo = 0;
  bool operator==(const Timestamps&) const = default;
};

struct TcpOptions {
  std::optional<std::uint16_t> mss;
  std::optional<std::uint8_t> window_scale;
  bool sack_permitted = false;
  std::optional<Timestamps> timestamps;
  std::vector<std::uint8_t> others;  // kinds that are none of these
  bool operator==(const TcpOptions&) const = default;
};

// The option part alone. Nothing if it is not a list of options: a length below two, or beyond the end.
std::optional<TcpOptions> read_tcp_options(Bytes options);

// The options of a whole TCP header. `cut` if the bytes end before the header does, as quotes in ICMP errors
// may: what is missing then says nothing of the path.
struct HeaderOptions {
  TcpOptions options;
  bool cut = false;
};
std::optional<HeaderOptions> read_header_options(Bytes tcp_header);

// Padded to whole words with no-operations in front of what needs alignment, in the order Linux writes them.
std::vector<std::byte> write_tcp_options(const TcpOptions& options);

}  // namespace longhaul::probe
