// SPDX-License-Identifier: Apache-2.0
// What the hosts of two twins put into MODULE records (PROTOCOL.md, section 4): a message in pieces that
// credit has room for, and that a half has stepped aside. Framing only; sending is the host's business, the
// messages are the module's.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"
#include "proxy/modules/module.h"

namespace longhaul::modules {

enum class TwinRecord : std::uint8_t {
  message = 0,  // a whole message, or its last piece
  piece = 1,    // a piece of a message, of which more follows
  aside = 2,    // the sender's half has stepped aside from its way into the stream at this position
};

inline constexpr std::size_t kTwinRecordHead = 1;
inline constexpr std::size_t kMaxTwinPiece = 64 * 1024;

// Puts messages together again.
class TwinReader {
 public:
  struct Said {
    bool aside = false;
    std::optional<Slice> message;
  };
  // Nothing: a piece, or a kind that this version does not know. An error ends the flow.
  Result<std::optional<Said>> feed(Slice body);
  std::size_t held_bytes() const { return pieces_.capacity(); }

 private:
  Buffer pieces_;
};

}  // namespace longhaul::modules
