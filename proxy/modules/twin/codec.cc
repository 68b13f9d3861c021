// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/twin/codec.h"

namespace longhaul::twin {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "longhaul.twin"; }
  std::string message(int value) const override {
    return static_cast<MessageError>(value) == MessageError::unknown_message ? "unknown twin message"
                                                                             : "malformed twin message";
  }
};

}  // namespace

const boost::system::error_category& message_error_category() {
  static const Category category;
  return category;
}

std::uint64_t FieldReader::number(std::uint64_t most) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = in_.u8();
    if (!byte) return fail(), 0;
    const std::uint64_t bits = *byte & 0x7fu;
    if (shift == 63 && bits > 1) return fail(), 0;
    value |= bits << shift;
    if (!(*byte & 0x80u)) return value <= most ? value : (fail(), 0);
  }
  return fail(), 0;
}

Bytes FieldReader::bytes() {
  const std::uint64_t size = number(~0ull);
  const auto taken = in_.bytes(size);
  if (!taken) return fail(), Bytes{};
  return *taken;
}

}  // namespace longhaul::twin
