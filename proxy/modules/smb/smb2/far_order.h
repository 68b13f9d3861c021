// SPDX-License-Identifier: Apache-2.0
// The far half's part for order: requests that the client believes to be completed are completed before any
// request that depends on them reaches the server. Converts the server's responses to promised WRITEs and
// CLOSEs into Kept, holds ordering points until then, and afterwards queries the free space (far_room.h) and
// returns oplocks (oplock_returns.h). near_writes.h and near_metadata.h decide what may be promised.
//
// A request waits for earlier promises:
// - of the same file, through any open: CLOSE, FLUSH, LOCK, SET_INFO, QUERY_INFO, a CREATE of its name, a
//   READ of or before the range being written, and a WRITE, promised or not, that overlaps it;
// - of all files: LOGOFF, TREE_DISCONNECT, SESSION_SETUP, QUERY_DIRECTORY, IOCTL, renames and links, queries
//   of space and quota, compounds, the acknowledgement of a break, the end of the client's stream;
// and for all held requests of the same file. order_scope.h, unfinished_promises.h and held_requests.h apply
// these rules.
#pragma once
#include <map>
#include <unordered_map>

#include "proxy/modules/smb/smb2/far_room.h"
#include "proxy/modules/smb/smb2/held_requests.h"
#include "proxy/modules/smb/smb2/oplock_returns.h"
#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/unfinished_promises.h"

namespace longhaul::smb::smb2 {

class FarOrder final : public FarPart {
 public:
  explicit FarOrder(FarSide& side) : side_(side) {}

  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  // Promised and Broken.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_ids_freed(TimePoint) override { returns_.on_ids_freed(); }
  void on_timeout(TimePoint now) override { returns_.on_timeout(now); }
  std::optional<TimePoint> next_timeout() const override { return returns_.next_timeout(); }
  void stream_ended(TimePoint) override { returns_.stream_ended(); }
  bool quiet() const override { return promises_.empty() && held_.empty(); }
  bool owes() const override { return !promises_.empty(); }

  // Our own CLOSE of a file that the client did not open: later requests wait for it as for a promised one. The
  // numbers are those of far_opens.h.
  void begin_own(std::uint64_t number, const FileName& name);
  void end_own(TimePoint now, std::uint64_t number);

  void ask_room(TimePoint now, const Open& open) { room_.ask(now, open); }

  std::size_t held_bytes() const { return held_.bytes(); }  // of frames

 private:
  using Sequence = UnfinishedPromises::Sequence;
  struct Promise {
    OpenKey open;
    FileGroupRef file;
    Sequence sequence = 0;
    bool write = false;  // or a CLOSE
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint16_t credits = 0;  // granted with interim responses
  };
  struct Own {
    FileGroupRef file;
    Sequence sequence = 0;
  };
  void begin(Promise& promise, const Message& message);
  void done(TimePoint now, MessageId id, const Element& answer);
  void release(TimePoint now, const FileGroupRef& file);

  FarSide& side_;
  Sequence next_sequence_ = 1;
  KeyedMap<MessageId, Promise> promises_;  // not answered by the server
  std::unordered_map<OpenKey, std::size_t, OpenKeyHash> promised_through_;
  std::map<std::uint64_t, Own> own_;  // our own CLOSEs
  UnfinishedPromises unfinished_;     // both
  HeldRequests held_;
  FarRoom room_{side_};
  OplockReturns returns_{side_, [this](const OpenKey& open) { return promised_through_.contains(open); }};
};

}  // namespace longhaul::smb::smb2
