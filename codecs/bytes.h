// SPDX-License-Identifier: Apache-2.0
// Borrowed bytes. Owned bytes are a Slice (slice.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace longhaul {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace longhaul
