// SPDX-License-Identifier: Apache-2.0
// Asks the server for the room on its disks, for as long as writes may be promised to them, and tells the
// near half. When to ask is decided by promises/disk_room.h.
#pragma once
#include "proxy/modules/promises/disk_room.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarRoom {
 public:
  explicit FarRoom(FarSide& side) : side_(side) {}

  // Where WRITEs of this open may be promised, and it is time to.
  void ask(TimePoint now, const Open& open);
  // The server has answered a promised WRITE.
  void written(const OpenKey& open, std::uint32_t length);

 private:
  FarSide& side_;
  DiskQuestions questions_;
};

}  // namespace longhaul::smb::smb2
