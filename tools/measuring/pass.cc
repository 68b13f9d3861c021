// SPDX-License-Identifier: Apache-2.0
// Drawing, writing and comparing.
#include "tools/measuring/pass.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cassert>
#include <charconv>

#include "tools/measuring/trouble.h"

namespace longhaul::measuring {

Pass Pass::draw() {
  Pass pass;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(pass.bytes_.data()), static_cast<int>(kPassBytes)) != 1)
    throw Trouble("cannot generate random bytes");
  return pass;
}

Pass Pass::of_text(std::string_view text) {
  Pass pass;
  bool right = text.size() == 2 * kPassBytes;
  for (std::size_t i = 0; right && i < kPassBytes; ++i) {
    unsigned value = 0;
    const char* digits = text.data() + 2 * i;
    right = std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    pass.bytes_[i] = static_cast<std::byte>(value);
  }
  if (!right) throw Trouble("the other side sent an invalid pass for the data connection");
  return pass;
}

std::string Pass::text() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes_) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

bool Pass::is(Bytes shown) const {
  return shown.size() == kPassBytes && CRYPTO_memcmp(shown.data(), bytes_.data(), kPassBytes) == 0;
}

PassReader::Verdict PassReader::feed(Bytes piece, const Pass& pass) {
  assert(piece.size() <= wanted());
  std::ranges::copy(piece, shown_.begin() + static_cast<std::ptrdiff_t>(held_));
  held_ += piece.size();
  if (held_ < kPassBytes) return Verdict::more;
  return pass.is(shown_) ? Verdict::right : Verdict::wrong;
}

}  // namespace longhaul::measuring
