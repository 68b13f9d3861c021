// SPDX-License-Identifier: Apache-2.0
// What the datagrams of a sweep say about themselves, and the marks of a classic ttcp. Leaves counting them
// to tally.h.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "codecs/bytes.h"

namespace longhaul::ttcp {

// The first 16 bytes of each datagram of a sweep, in network order: "LHtt", the test's id (4), a number (8).
struct Label {
  std::uint32_t test = 0;
  std::uint64_t number = 0;  // from 0; the two largest are the marks
};
inline constexpr std::size_t kLabelBytes = 16;
inline constexpr std::uint64_t kEndMark = ~std::uint64_t{0};
inline constexpr std::uint64_t kStartMark = kEndMark - 1;

void write_label(const Label& label, std::span<std::byte, kLabelBytes> to);
std::optional<Label> parse_label(Bytes datagram);  // nothing: not one of ours

// Classic ttcp says start and end by datagrams of at most 4 bytes, one and five of them. It takes the second
// for the end whatever came before, so that a lost start mark delays the end and a doubled one is the end.
class ClassicMarks {
 public:
  enum class Said { data, start, end };
  Said on_datagram(std::size_t bytes);

 private:
  bool data_seen_ = false;
  unsigned marks_without_data_ = 0;
};
inline constexpr std::size_t kClassicMarkBytes = 4;

}  // namespace longhaul::ttcp
