// SPDX-License-Identifier: Apache-2.0
// What lets a data connection in: random bytes that one side announces on the control connection and the
// other sends first. Strangers that find the port do not have them; an eavesdropper on the control connection
// does. Pure; door.h has the sockets.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul::measuring {

inline constexpr std::size_t kPassBytes = 16;

class Pass {
 public:
  static Pass draw();
  static Pass of_text(std::string_view text);  // throws Trouble where it is none

  std::string text() const;  // for the control connection
  Bytes bytes() const { return bytes_; }
  bool is(Bytes shown) const;  // in a time that does not depend on the bytes

 private:
  std::array<std::byte, kPassBytes> bytes_{};
};

// Takes what one connection shows, in whatever pieces, and judges when all of it is there.
class PassReader {
 public:
  enum class Verdict { more, right, wrong };
  std::size_t wanted() const { return kPassBytes - held_; }  // feed no more
  Verdict feed(Bytes piece, const Pass& pass);

 private:
  std::array<std::byte, kPassBytes> shown_{};
  std::size_t held_ = 0;
};

}  // namespace longhaul::measuring
