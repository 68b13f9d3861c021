// SPDX-License-Identifier: Apache-2.0
// One open file of an SMB1 connection, as recorded by both halves: which process opened it and how, what is
// granted now, what was changed through it. connection.h updates it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/features.h"
#include "proxy/modules/smb/smb1/file_name.h"
#include "proxy/modules/smb/smb1/records.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb::smb1 {

inline OpenKey key_of(std::uint16_t uid, std::uint16_t tid, std::uint16_t fid) {
  OpenKey key{.session = uid, .tree = tid, .id = {}};
  store_le<std::uint16_t>(key.id.data(), fid);
  return key;
}
inline std::uint16_t fid_of(const OpenKey& key) { return load_le<std::uint16_t>(key.id, 0); }

struct Open {
  OpenKey key;
  std::uint64_t serial = 0;  // unique in this connection
  std::uint16_t uid = 0, tid = 0, fid = 0;
  std::uint32_t pid = 0;
  std::uint16_t flags2 = 0;  // of the request that opened it
  FileName name;
  std::u16string
      moved_to;  // the new name in records of lost writes, after it, or a folder above, was renamed
  std::uint64_t end_of_file = 0;             // as in the response
  std::uint64_t confirmed_bytes = 0;         // the server has confirmed that the file reached that size
  bool unpromised = false;                   // counted as written without early responses (near_writes.cc)
  bool size_is_known = false;                // OPEN_ANDX reports only 32 bits of it
  bool may_read = false, may_write = false;  // write: at any offset, not only at the end
  bool write_through = false;                // or unbuffered
  bool random = false;                       // the client announces random access
  bool delete_on_close = false;
  bool unnamed = false;  // a stream, or named relative to a handle: cannot have a record
  bool changed = false;  // attributes were set through it: its CLOSE may matter
  // WRITEs requested through it and answered; and of these, those before a FLUSH that the server has answered
  // with success.
  std::uint64_t writes = 0, flushed_writes = 0;
  bool locked = false;     // byte ranges were locked through it
  bool closing = false;    // its CLOSE is in progress
  bool looks = false;      // only for attributes: breaks no oplock and conflicts with no share mode
  bool on_behalf = false;  // we requested its oplock, hidden from the client
  // A notification reports changes by others that break no oplock (far_watch.h, Watched).
  bool watched = false;
  // What is granted now. A break reduces it as soon as it is received, before it is acknowledged.
  Oplock oplock = Oplock::none;
  bool break_pending = false;
  // For the far half, in case the near proxy fails (near_settled.h, far_losses.h).
  bool was_write_cached = false;  // at any time: its WRITEs may have been promised
  bool settled = false;           // nothing is promised until a WRITE requested after this is answered
  std::uint32_t times_settled = 0;
  bool failed_promise = false;  // at the far half: the client may not have been informed yet

  bool may_cache_reads() const { return oplock != Oplock::none && !break_pending && !locked; }
  bool may_cache_writes() const {
    return (oplock == Oplock::exclusive || oplock == Oplock::batch) && !break_pending && !locked;
  }
  // Others may still change it unnoticed: a server breaks oplocks only for requests that reach it by SMB.
  bool is_guarded(const Features& features) const {
    return !on_behalf || watched || features.metadata_relaxed;
  }
  // The server has confirmed this write.
  void confirm(std::uint64_t offset, std::uint32_t length) {
    if (offset <= ~std::uint64_t{0} - length) confirmed_bytes = std::max(confirmed_bytes, offset + length);
  }
  bool may_cache_handle() const { return oplock == Oplock::batch && !break_pending; }
};

}  // namespace longhaul::smb::smb1
