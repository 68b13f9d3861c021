// SPDX-License-Identifier: Apache-2.0
// Messages between two halves about requests that are answered before the server has answered them. The
// halves implement their effects.
#pragma once
#include <cstdint>
#include <tuple>

#include "proxy/modules/twin/open_key.h"

namespace longhaul::promises {

using twin::MessageNumber;
using twin::OpenKey;
using twin::OpenKeyHash;

// near -> far: the near half has answered, or will answer, the WRITE or CLOSE in the next frame; the far half
// must send Kept instead of the server's response.
struct Promised {
  OpenKey open;
  MessageNumber message{};
  static constexpr std::tuple kFields{&Promised::open, &Promised::message};
};
// far -> near: the server's response to it.
struct Kept {
  MessageNumber message{};
  std::uint32_t status = 0;  // the protocol's
  std::uint32_t written = 0;
  std::uint16_t credits = 0;  // granted with it, in protocols whose servers limit requests (SMB2)
  static constexpr std::tuple kFields{&Kept::message, &Kept::status, &Kept::written, &Kept::credits};
};

// far -> near: how much may still be promised to a tree's disk (disk_room.h).
struct Room {
  std::uint64_t session = 0;
  std::uint32_t tree = 0;
  std::uint64_t available_bytes = 0;
  std::uint64_t counted_bytes = 0;
  static constexpr std::tuple kFields{&Room::session, &Room::tree, &Room::available_bytes,
                                      &Room::counted_bytes};
};

// ---- if the near half fails

// near -> far, before its first open: the number of this near daemon, which remembers its promises for as
// long as it runs (lost_writes.h), and of the previous one, if this one has read all its marks (marks.h).
struct Remembers {
  std::uint64_t near = 0, before = 0;
  static constexpr std::tuple kFields{&Remembers::near, &Remembers::before};
};
// near -> far: the client has sent more, or ended in order, after the response to this request. The response
// was the error for lost writes, so the client has received it.
struct LossRead {
  MessageNumber message{};
  static constexpr std::tuple kFields{&LossRead::message};
};
// near -> far: no promise for this open is outstanding, and each failure was reported. No more WRITEs are
// promised before the server has answered one that was not promised.
struct Settled {
  OpenKey open;
  static constexpr std::tuple kFields{&Settled::open};
};
// far -> near: the file of this open is marked on the far half's disk, so WRITEs may be promised; `refused`:
// it cannot be marked. Valid until the next Settled; `settled`: how many of them the far half has received
// about this open.
struct Marked {
  OpenKey open;
  std::uint32_t settled = 0;
  bool refused = false;
  static constexpr std::tuple kFields{&Marked::open, &Marked::settled, &Marked::refused};
};

}  // namespace longhaul::promises
