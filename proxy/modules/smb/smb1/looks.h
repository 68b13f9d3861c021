// SPDX-License-Identifier: Apache-2.0
// Messages between the halves about handles that are opened ahead: an Answer to NT_CREATE, whose request is
// the epoch and the request's words and bytes; Local for a handle that is used; Drop for all.
#pragma once
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

// Differs from every file's key.
inline OpenKey looks_key() {
  OpenKey key;
  key.id[2] = std::byte{'L'};
  return key;
}

// The part after AndXCommand and AndXOffset, which is the same in equal requests.
inline Slice request_of_look(std::uint32_t epoch, const Message& message) {
  Buffer request;
  append_field<std::uint32_t>(request, epoch);
  append_field<std::uint16_t>(request, message.header.tid);
  append_field<std::uint16_t>(request, message.header.uid);
  append_field<std::uint16_t>(request, message.header.flags2);
  append(request, message.first().words.subspan(4));
  append(request, message.first().bytes);
  return Slice::copy_of(request);
}
inline constexpr std::size_t kEpochBytes = 4;

// The file under a batch oplock whose attributes `look` reads.
inline Open* looked_at(Connection& connection, const Open& look) {
  if (!look.looks || !look.name.exact || look.name.stream) return nullptr;
  for (auto& [fid, open] : connection.opens().all())
    if (!open.looks && !open.closing && open.may_cache_handle() && open.name == look.name) return &open;
  return nullptr;
}

}  // namespace longhaul::smb::smb1
