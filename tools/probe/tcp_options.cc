// SPDX-License-Identifier: Apache-2.0
// Kind, length, value: each length is checked before it is believed.
#include "tools/probe/tcp_options.h"

#include "tools/probe/network_order.h"

namespace longhaul::probe {
namespace {

enum Kind : std::uint8_t {
  kEnd = 0,
  kNothing = 1,
  kMss = 2,
  kWindowScale = 3,
  kSackPermitted = 4,
  kTimestamps = 8
};
constexpr std::size_t kPlainHeader = 20;

// False for a length that the kind does not have.
bool take(TcpOptions& found, std::uint8_t kind, Bytes value) {
  switch (kind) {
    case kMss:
      if (value.size() != 2) return false;
      found.mss = word_at(value, 0);
      return true;
    case kWindowScale:
      if (value.size() != 1) return false;
      found.window_scale = byte_at(value, 0);
      return true;
    case kSackPermitted:
      found.sack_permitted = value.empty();
      return value.empty();
    case kTimestamps:
      if (value.size() != 8) return false;
      found.timestamps = Timestamps{number_at(value, 0), number_at(value, 4)};
      return true;
    default:
      found.others.push_back(kind);
      return true;
  }
}

// With `cut`, an option that goes beyond the end is left out; otherwise it makes the list invalid.
std::optional<TcpOptions> read(Bytes options, bool cut) {
  TcpOptions found;
  while (!options.empty()) {
    const std::uint8_t kind = byte_at(options, 0);
    if (kind == kEnd) break;
    if (kind == kNothing) {
      options = options.subspan(1);
      continue;
    }
    if (options.size() < 2) return cut ? std::optional(found) : std::nullopt;
    const std::size_t length = byte_at(options, 1);
    if (length < 2) return std::nullopt;
    if (length > options.size()) return cut ? std::optional(found) : std::nullopt;
    if (!take(found, kind, options.subspan(2, length - 2))) return std::nullopt;
    options = options.subspan(length);
  }
  return found;
}

}  // namespace

std::optional<TcpOptions> read_tcp_options(Bytes options) { return read(options, false); }

std::optional<HeaderOptions> read_header_options(Bytes tcp_header) {
  if (tcp_header.size() < kPlainHeader) return std::nullopt;
  const std::size_t size = std::size_t{byte_at(tcp_header, 12)} / 16 * 4;
  if (size < kPlainHeader) return std::nullopt;
  const bool cut = tcp_header.size() < size;
  const auto options = read(tcp_header.first(std::min(size, tcp_header.size())).subspan(kPlainHeader), cut);
  if (!options) return std::nullopt;
  return HeaderOptions{*options, cut};
}

std::vector<std::byte> write_tcp_options(const TcpOptions& options) {
  std::vector<std::byte> out;
  const auto put = [&](std::uint32_t number, std::size_t size) {
    while (size-- > 0) out.push_back(static_cast<std::byte>(number >> (8 * size)));
  };
  if (options.mss) {
    put(kMss << 8 | 4, 2);
    put(*options.mss, 2);
  }
  if (!options.timestamps && options.sack_permitted) put(kNothing << 8 | kNothing, 2);
  if (options.sack_permitted) put(kSackPermitted << 8 | 2, 2);
  if (options.timestamps) {
    if (!options.sack_permitted) put(kNothing << 8 | kNothing, 2);
    put(kTimestamps << 8 | 10, 2);
    put(options.timestamps->value, 4);
    put(options.timestamps->echo, 4);
  }
  if (options.window_scale) {
    put(kNothing, 1);
    put(kWindowScale << 8 | 3, 2);
    put(*options.window_scale, 1);
  }
  return out;
}

}  // namespace longhaul::probe
