// SPDX-License-Identifier: Apache-2.0
// An open file of a connection, as granted by the server, and the names and keys that identify it.
// open_table.h has all opens of a connection.
#pragma once
#include <optional>
#include <string>

#include "proxy/modules/smb/smb2/files.h"
#include "proxy/modules/smb/smb2/records.h"
#include "proxy/modules/smb/smb2/trees.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb::smb2 {

struct Open {
  OpenKey key;
  FileId file;
  SessionId session = 0;
  TreeId tree = 0;
  FileName name;
  // The path as spelled by the client, with which it can be opened again. Empty if there is none (by id, DFS).
  std::u16string spelled;
  std::u16string moved_to;   // new name, relative to its share, after a rename through this open
  bool dfs = false;          // `name` may begin with server and share
  bool unnamed = false;      // a stream, or opened by an id: cannot have a record of lost writes
  FileGroupRef group;        // of `name`; null until the connection knows the open
  std::uint32_t access = 0;  // desired, generic rights mapped; see may_read(), may_write()
  std::uint32_t options = 0;
  std::uint32_t share_access = 0;
  Disposition disposition = Disposition::open;
  bool directory = false;
  bool disk_file = false;    // a plain file of a disk share, not a reparse point
  bool durable = false;      // durable, persistent or resilient: granted, or requested for an open handle
  bool reconnected = false;  // its state began on another connection
  bool replayed = false;
  // Its CREATE may be replayed on another connection, until the client has shown that it received the
  // response. Servers accept any request on the handle as proof ([MS-SMB2] 3.3.5.9, replay): ours must not be
  // the first.
  bool may_be_replayed = false;
  bool on_behalf = false;  // we requested its oplock, hidden from the client
  bool given_up =
      false;  // the near half no longer uses it for responses, although the server has not broken it
  // A notification reports changes by others that break no oplock (far_watch.h, Watched).
  bool watched = false;
  bool moved = false;             // beside the server: it can no longer be queried (far half)
  bool locked = false;            // byte ranges were locked through it, or before it was opened: is_locked()
  bool closing = false;           // its CLOSE was received
  bool deletes = false;           // closing it deletes the file (lost_files.h)
  bool unpromised = false;        // counted as written without early responses (near_writes.cc)
  std::uint64_t end_of_file = 0;  // as in the CREATE response
  // The server has confirmed that the file reached that size: so its file system supports it.
  std::uint64_t confirmed_bytes = 0;
  std::uint64_t allocation_bytes = 0;
  std::uint32_t file_attributes = 0;
  FileTimes times;

  // What is granted now, as the state of a lease (level II: R; exclusive: RW; batch: RWH). A break reduces it
  // as soon as it is received, before it is acknowledged.
  std::uint32_t caching = lease_state::none;
  bool break_pending = false;
  std::optional<LeaseKey> lease;
  OplockLevel oplock = OplockLevel::none;  // as granted by the server

  // For the far half, in case the near proxy fails (near_settled.h, far_losses.h).
  bool was_write_cached = false;  // at any time: its WRITEs may have been promised
  bool settled = false;           // nothing is promised until a WRITE requested after this is answered
  std::uint32_t times_settled = 0;
  bool failed_promise = false;  // at the far half: the client may not have been informed yet
  // Persistent or resilient: the server keeps others away even while its client is gone.
  bool outlasts_breaks = false;

  std::size_t name_bytes() const {
    return (name.path.size() + spelled.size() + moved_to.size()) * sizeof(char16_t);
  }
  // Whether byte ranges were locked through it or another open of the same file.
  bool is_locked() const { return locked || (group && group->count(&FileCounts::locks) != 0); }
  bool may_read() const;
  bool may_write() const;
  bool write_through() const;  // or unbuffered: never written behind, never read ahead
  bool truncates() const;      // its file, if it exists
  // The values requested by this CREATE; session, tree and group are set elsewhere.
  void requested(const CreateRequest& create, const Header& header);
  // The values of the server's response; the share may be unknown (null). A lease that it grants is shared
  // with other opens (OpenTable::share_lease()).
  void granted(const CreateResponse& answer, const Tree* share);
  // The server reduces its oplock to this level.
  void broken(OplockLevel to);
  // The server has confirmed this write.
  void confirm(std::uint64_t offset, std::uint32_t length);
  // Cached data of its file is void, for a reason other than a request.
  void changed() const { group->add(&FileCounts::changes); }
  // The same for its attributes alone.
  void doubted() const { group->add(&FileCounts::doubts); }
};

OpenKey key_of(SessionId session, TreeId tree, const FileId& file);
FileId file_of(const OpenKey& key);
FileName file_name_of(TreeId tree, const CreateRequest& request, const Header& header);
std::u16string spelled_path_of(const CreateRequest& request, const Header& header);
// The whole name, up to the same limit.
std::u16string name_in(const CreateRequest& request);
// An oplock as the state of a lease.
std::uint32_t caching_of(OplockLevel level);

}  // namespace longhaul::smb::smb2
