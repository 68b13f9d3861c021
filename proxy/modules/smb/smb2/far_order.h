// SPDX-License-Identifier: Apache-2.0
// The far half's part for order: what the client believes done is done before anything that builds on it
// reaches the server. Turns the server's answers to promised WRITEs and CLOSEs into Kept, holds ordering
// points until then, asks the server for the room on its disk, and gives back oplocks that were held on the
// client's behalf. What may be promised is decided in near_writes.h and near_metadata.h.
//
// A request waits for promises that were made before it:
//   the same file (all its opens)   CLOSE FLUSH LOCK IOCTL SET_INFO QUERY_INFO OPLOCK_BREAK, CREATE of its
//   name, WRITE,
//                                   READ of a range that is being written, and a promised WRITE over another
//   everything                      LOGOFF TREE_DISCONNECT SESSION_SETUP QUERY_DIRECTORY, renames and links,
//   space and
//                                   quota, compounds, a lease's break acknowledged, the end of the client's
//                                   stream
// and behind whatever of the same file is held already.
#pragma once
#include <deque>
#include <map>
#include <unordered_map>

#include "proxy/modules/smb/disk_room.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarOrder final : public FarPart {
 public:
  explicit FarOrder(FarSide& side) : side_(side) {}

  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  // Promised and Broken.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_ids_freed(TimePoint now) override;
  bool quiet() const override { return promised_.empty() && held_.empty(); }

  // What is promised and not done for this file: data read from it now would be older than the client
  // believes.
  bool busy(const Open& open) const;

 private:
  struct Promise {
    OpenKey open;
    FileName name;
    bool sent = false;   // its frame has gone to the server
    bool write = false;  // or a CLOSE
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t credits = 0;  // granted with interim answers
  };
  struct Held {
    Message message;
    std::optional<FileName> name;  // none: everything
    bool promised = false;
  };
  struct Scope {
    bool waits = false;            // false: an ordering point of nothing
    std::optional<FileName> name;  // none: everything
    std::uint64_t offset = 0, length = 0;
    bool range_only = false;  // only promised writes that overlap
  };
  Scope scope_of(const Message& message);
  bool blocked(const Scope& scope, MessageId self) const;
  void release(TimePoint now);
  void sent(MessageId id);
  void ask_room(TimePoint now, const Open& open);
  void give_back(TimePoint now);

  FarSide& side_;
  std::map<MessageId, Promise> promised_;  // without the server's answer
  std::deque<Held> held_;
  DiskQuestions questions_;
  struct GivingBack {
    OpenKey open;
    OplockLevel level = OplockLevel::none;
    bool near_done = false;
  };
  std::vector<GivingBack> giving_back_;
};

}  // namespace longhaul::smb::smb2
