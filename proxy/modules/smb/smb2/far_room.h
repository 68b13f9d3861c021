// SPDX-License-Identifier: Apache-2.0
// Queries the free space of the server's disks, for as long as writes to them may be promised, and reports it
// to the near half. promises/disk_room.h decides when to query.
#pragma once
#include "proxy/modules/promises/disk_room.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarRoom {
 public:
  explicit FarRoom(FarSide& side) : side_(side) {}

  // Sends a query if WRITEs of this open may be promised, and it is time to.
  void ask(TimePoint now, const Open& open);
  // The server has answered a promised WRITE.
  void written(const OpenKey& open, std::uint32_t length);

 private:
  FarSide& side_;
  DiskQuestions questions_;
};

}  // namespace longhaul::smb::smb2
