// SPDX-License-Identifier: Apache-2.0
// Labels in network order, and the reading of classic marks.
#include "tools/ttcp/datagram.h"

namespace longhaul::ttcp {
namespace {

constexpr std::uint32_t kMagic = 0x4c487474;  // "LHtt"

template <class Number>
void put(Number value, std::byte* to) {
  for (std::size_t i = sizeof value; i-- > 0; value = static_cast<Number>(value >> 8))
    to[i] = static_cast<std::byte>(value & 0xff);
}

template <class Number>
Number get(const std::byte* from) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value = static_cast<Number>(value << 8 | std::to_integer<Number>(from[i]));
  return value;
}

}  // namespace

void write_label(const Label& label, std::span<std::byte, kLabelBytes> to) {
  put(kMagic, to.data());
  put(label.test, to.data() + 4);
  put(label.number, to.data() + 8);
}

std::optional<Label> parse_label(Bytes datagram) {
  if (datagram.size() < kLabelBytes || get<std::uint32_t>(datagram.data()) != kMagic) return std::nullopt;
  return Label{get<std::uint32_t>(datagram.data() + 4), get<std::uint64_t>(datagram.data() + 8)};
}

ClassicMarks::Said ClassicMarks::on_datagram(std::size_t bytes) {
  if (bytes > kClassicMarkBytes) {
    data_seen_ = true;
    return Said::data;
  }
  if (data_seen_) return Said::end;
  // All data may have been lost: a start mark and its double are not the end, a third one is.
  return ++marks_without_data_ <= 2 ? Said::start : Said::end;
}

}  // namespace longhaul::ttcp
