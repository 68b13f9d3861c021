// SPDX-License-Identifier: Apache-2.0
// Splits one direction of a TLS connection into records (RFC 8446, section 5.1), without parsing their
// content.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"
#include "codecs/slice.h"

namespace longhaul::tls {

inline constexpr std::size_t kHeadBytes = 5;
// RFC 5246, section 6.2.3: TLS 1.2 allows 2,048 bytes around 16 KiB.
inline constexpr std::size_t kMostBodyBytes = 16 * 1024 + 2048;

class Records {
 public:
  void push(Bytes bytes) {
    if (taken_ > 0) held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(std::exchange(taken_, 0)));
    append(held_, bytes);
  }

  enum class Next : std::uint8_t { record, nothing, invalid };
  // The next whole record, including its head; valid until the next push().
  Next next(Bytes& record) {
    const Bytes rest = Bytes(held_).subspan(taken_);
    if (!rest.empty() && (rest[0] < std::byte{20} || rest[0] > std::byte{23})) return Next::invalid;
    if (rest.size() > 1 && rest[1] != std::byte{3}) return Next::invalid;
    if (rest.size() < kHeadBytes) return Next::nothing;
    const std::size_t body = std::to_integer<std::size_t>(rest[3]) << 8 | std::to_integer<std::size_t>(rest[4]);
    if (body > kMostBodyBytes) return Next::invalid;
    if (rest.size() < kHeadBytes + body) return Next::nothing;
    record = rest.first(kHeadBytes + body);
    taken_ += record.size();
    return Next::record;
  }

  // next() gives the last record again. Only before the next push().
  void put_back(Bytes record) { taken_ -= record.size(); }

  std::size_t held_bytes() const { return held_.size() - taken_; }
  // Returns and removes all held bytes.
  Slice take_rest() {
    Slice rest = Slice::copy_of(Bytes(held_).subspan(taken_));
    held_.clear();
    taken_ = 0;
    return rest;
  }

 private:
  Buffer held_;
  std::size_t taken_ = 0;
};

}  // namespace longhaul::tls
