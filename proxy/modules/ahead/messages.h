// SPDX-License-Identifier: Apache-2.0
// Messages between two halves about data read ahead of the client. They are small: data follows a message as
// raw bytes of the stream. The halves implement their effects.
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
  std::optional<std::uint64_t> end_of_file;  // end of the file, if known since a short READ
  std::uint32_t attached_bytes() const { return length; }
  static constexpr std::tuple kFields{&Ahead::open, &Ahead::stamp, &Ahead::offset, &Ahead::length,
                                      &Ahead::end_of_file};
};
// near -> far: this READ was answered from data read ahead. The server never receives its number, so the far
// half may use it; `charge` is its cost for the client at the server (SMB2: credits).
struct Used {
  OpenKey open;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  MessageNumber message{};
  std::uint16_t charge = 0;
  std::uint64_t seen = 0;  // Ahead messages of this open received so far
  static constexpr std::tuple kFields{&Used::open, &Used::offset, &Used::length, &Used::message,
                                      &Used::charge, &Used::seen};
};
// near -> far: the frame after this is a READ of which [missing_from, missing_to) is not stored here. `seen`:
// Ahead messages of this open received so far. The far half drops the frame if later Ahead messages contain
// everything missing.
struct Asked {
  OpenKey open;
  Stamp stamp;
  MessageNumber message{};
  std::uint64_t missing_from = 0, missing_to = 0;
  std::uint64_t seen = 0;
  static constexpr std::tuple kFields{&Asked::open, &Asked::stamp, &Asked::message, &Asked::missing_from,
                                      &Asked::missing_to, &Asked::seen};
};
// far -> near: this READ was sent to the server after all: only the server's response answers it. Sent before
// an Ahead that might complete the READ.
struct Forwarded {
  MessageNumber message{};
  static constexpr std::tuple kFields{&Forwarded::message};
};
// Both directions: cached data of this open is void; `epoch` is the sender's own count from here on.
struct Drop {
  OpenKey open;
  std::uint32_t epoch = 0;
  static constexpr std::tuple kFields{&Drop::open, &Drop::epoch};
};

// near -> far: the limit of unread data ahead of the client on this connection. The far half decides until it
// is sent.
struct Allowance {
  std::uint64_t bytes = 0;
  static constexpr std::tuple kFields{&Allowance::bytes};
};

// far -> near: other clients may have changed this open's file (or a directory's listing), so earlier
// knowledge of it is void. `watched`: the next change will be reported as well.
struct Watched {
  OpenKey open;
  bool watched = false;
  static constexpr std::tuple kFields{&Watched::open, &Watched::watched};
};

}  // namespace longhaul::ahead
