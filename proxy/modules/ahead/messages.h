// SPDX-License-Identifier: Apache-2.0
// What two halves tell each other about data read ahead of the client. Small: data never travel inside a
// message but behind it, as raw bytes of the stream. What follows from a message is the halves'.
#pragma once
#include <cstdint>
#include <optional>
#include <tuple>

#include "proxy/modules/twin/open_key.h"

namespace longhaul::ahead {

using twin::MessageNumber;
using twin::OpenKey;
using twin::OpenKeyHash;
using twin::Stamp;

// far -> near: `length` raw bytes follow, the file's bytes at `offset`.
struct Ahead {
  OpenKey open;
  Stamp stamp;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;                  // attached
  std::optional<std::uint64_t> end_of_file;  // the file ends there: known since a read came short
  std::uint32_t attached_bytes() const { return length; }
  static constexpr std::tuple kFields{&Ahead::open, &Ahead::stamp, &Ahead::offset, &Ahead::length,
                                      &Ahead::end_of_file};
};
// near -> far: this READ was answered from what was ahead; the server never sees its number, which is the far
// half's to use, and `charge` is what it would have cost the client there (SMB2: credits).
struct Used {
  OpenKey open;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  MessageNumber message = 0;
  std::uint16_t charge = 0;
  std::uint64_t seen = 0;  // Ahead messages of this open that have come so far
  static constexpr std::tuple kFields{&Used::open, &Used::offset, &Used::length, &Used::message,
                                      &Used::charge, &Used::seen};
};
// near -> far: the frame behind this is a READ of which [missing_from, missing_to) is not here. Of this open
// `seen` Ahead messages have come so far. The far half swallows the frame if all that is missing comes in
// later ones.
struct Asked {
  OpenKey open;
  Stamp stamp;
  MessageNumber message = 0;
  std::uint64_t missing_from = 0, missing_to = 0;
  std::uint64_t seen = 0;
  static constexpr std::tuple kFields{&Asked::open, &Asked::stamp, &Asked::message, &Asked::missing_from,
                                      &Asked::missing_to, &Asked::seen};
};
// far -> near: this READ that was asked has gone to the server after all: only a frame answers it. Told
// before an Ahead that might complete it.
struct Forwarded {
  MessageNumber message = 0;
  static constexpr std::tuple kFields{&Forwarded::message};
};
// Either way: what is known of this open's data is void; `epoch` is the teller's own count from here on.
struct Drop {
  OpenKey open;
  std::uint32_t epoch = 0;
  static constexpr std::tuple kFields{&Drop::open, &Drop::epoch};
};

// near -> far: what is ahead of the client on this connection, unread, is to be no more than this. Until it
// is said: what the far half likes.
struct Allowance {
  std::uint64_t bytes = 0;
  static constexpr std::tuple kFields{&Allowance::bytes};
};

// far -> near: what was known of this open (a folder's listing, too) may have been changed by others, and
// holds no more if it was known before this message. `watched`: the next change is told as well.
struct Watched {
  OpenKey open;
  bool watched = false;
  static constexpr std::tuple kFields{&Watched::open, &Watched::watched};
};

}  // namespace longhaul::ahead
