// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/open_table.h"

namespace longhaul::smb::smb1 {

Open* OpenTable::find(std::uint16_t fid) {
  const auto found = opens_.find(fid);
  return found == opens_.end() ? nullptr : &found->second;
}

Open* OpenTable::find(const OpenKey& key) {
  Open* found = find(fid_of(key));
  return found && found->key == key ? found : nullptr;
}

Open* OpenTable::find_serial(std::uint64_t serial) {
  for (auto& [fid, open] : opens_)
    if (open.serial == serial) return &open;
  return nullptr;
}

Open* OpenTable::add(Open open) {
  if (!opens_.contains(open.fid) && !has_room_for(1)) return nullptr;
  open.serial = ++added_;
  return &opens_.insert_or_assign(open.fid, std::move(open)).first->second;
}

std::optional<Open> OpenTable::remove(const OpenKey& key) {
  const auto found = opens_.find(fid_of(key));
  if (found == opens_.end() || found->second.key != key) return std::nullopt;
  Open removed = std::move(found->second);
  opens_.erase(found);
  return removed;
}

}  // namespace longhaul::smb::smb1
