// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/connect_ahead.h"

#include <algorithm>
#include <cstdint>

namespace longhaul::tls {
namespace {

// RFC 8446, section 5.1
constexpr std::uint8_t kAlert = 21, kHandshake = 22, kMajor = 3;
constexpr std::size_t kRecordHead = 5;

}  // namespace

bool is_handshake(Bytes said) {
  while (!said.empty()) {
    if (std::to_integer<std::uint8_t>(said[0]) != kHandshake) return false;
    if (said.size() > 1 && std::to_integer<std::uint8_t>(said[1]) != kMajor) return false;
    if (said.size() < kRecordHead) return true;
    const std::size_t size =
        std::to_integer<std::size_t>(said[3]) << 8 | std::to_integer<std::size_t>(said[4]);
    said = said.subspan(std::min(said.size(), kRecordHead + size));
  }
  return true;
}

bool is_no_alert(Bytes first) { return !first.empty() && std::to_integer<std::uint8_t>(first[0]) != kAlert; }

}  // namespace longhaul::tls
