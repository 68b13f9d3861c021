// SPDX-License-Identifier: Apache-2.0
// The contents of MODULE records (PROTOCOL.md, section 4) between the hosts of two twins: messages in pieces
// that fit the credit, and the notice that a half has stepped aside. Framing only.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"
#include "proxy/modules/module.h"

namespace longhaul::modules {

enum class TwinRecord : std::uint8_t {
  message = 0,  // a whole message, or the last piece of one
  piece = 1,    // a piece of a message, not the last
  aside = 2,    // the sender's half has stepped aside from its direction into the stream at this position
};

inline constexpr std::size_t kTwinRecordHead = 1;
inline constexpr std::size_t kMaxTwinPiece = 64 * 1024;

// Reassembles messages.
class TwinReader {
 public:
  struct Said {
    bool aside = false;
    std::optional<Slice> message;
  };
  // Returns nullopt for an incomplete message, or a kind that this version does not support. An error ends
  // the flow.
  Result<std::optional<Said>> feed(Slice body);
  std::size_t held_bytes() const { return pieces_.capacity(); }

 private:
  Buffer pieces_;
};

}  // namespace longhaul::modules
