// SPDX-License-Identifier: Apache-2.0
// The far half's part for order: what the client believes done is done before anything that builds on it
// reaches the server. Turns the server's answers to promised WRITEs and CLOSEs into Kept, holds ordering
// points until then, and when they are done asks for room on the disk (far_room.h) and gives back oplocks
// (oplock_returns.h). What may be promised is decided in near_writes.h and near_metadata.h.
//
// A request waits for earlier promises:
// - of the same file, through any open: CLOSE, FLUSH, LOCK, SET_INFO, QUERY_INFO, a CREATE of its name, a
//   READ of or before the range being written, and a WRITE, promised or not, that overlaps it;
// - of everything: LOGOFF, TREE_DISCONNECT, SESSION_SETUP, QUERY_DIRECTORY, IOCTL, renames and links, queries
//   of space and quota, compounds, the acknowledgement of a break, the end of the client's stream;
// and behind all held requests of the same file.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "proxy/modules/smb/smb2/far_room.h"
#include "proxy/modules/smb/smb2/oplock_returns.h"
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
  void on_ids_freed(TimePoint now) override { returns_.on_ids_freed(now); }
  void on_timeout(TimePoint now) override { returns_.on_timeout(now); }
  std::optional<TimePoint> next_timeout() const override { return returns_.next_timeout(); }
  void stream_ended(TimePoint now) override { returns_.stream_ended(now); }
  bool quiet() const override { return promises_.empty() && held_.empty(); }
  bool owes() const override { return !promises_.empty(); }

  // A CLOSE of our own for a file that the client did not open: later requests wait for it as for a promised
  // one. The numbers are far_opens.h's.
  void begin_own(std::uint64_t number, const FileName& name);
  void end_own(TimePoint now, std::uint64_t number);

  void ask_room(TimePoint now, const Open& open) { room_.ask(now, open); }

  std::size_t held_bytes() const { return held_bytes_; }  // of frames

 private:
  using Sequence = std::uint64_t;  // the order in which promises and held requests came
  struct Promise {
    OpenKey open;
    FileGroupRef file;
    Sequence sequence = 0;
    bool write = false;  // or a CLOSE
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint16_t credits = 0;  // granted with interim answers
  };
  // What a request must wait for.
  struct Scope {
    enum class Kind : std::uint8_t { nothing, range, file, everything };
    Kind kind = Kind::everything;
    FileGroupRef file;  // none: everything
    std::uint64_t offset = 0, length = 0;
  };
  struct Held {
    Message message;
    Scope scope;
    Sequence sequence = 0;
  };
  // Unfinished promises of one file; and requests that wait for them or for earlier waiting ones. So only the
  // first waiting request is ever examined, when something that it waits for is done.
  struct Work {
    FileGroupRef file;
    std::set<Sequence> promises;
    std::set<Sequence> others;                     // of these: not WRITEs
    std::multimap<std::uint64_t, Promise> writes;  // by offset
    std::uint64_t longest_write = 0;
    std::deque<Held> held;
  };
  using Heads = std::map<Sequence, FileGroupRef>;  // by the sequence of the first that waits

  Scope scope_of(const Message& message) const;
  static bool before(const std::set<Sequence>& promises, Sequence sequence);
  static bool is_barrier(const Scope& scope);
  bool waits(const Scope& scope, Sequence sequence) const;
  bool overlaps(const Work& work, const Scope& scope, Sequence sequence) const;
  Work& work_of(const FileGroupRef& file);
  void begin(Promise& promise, const Message& message);
  void done(TimePoint now, MessageId id, const Element& answer);
  void add_promise(const FileGroupRef& file, Sequence sequence);
  void remove_promise(const FileGroupRef& file, Sequence sequence);
  void hold(Held held);
  void release(TimePoint now, const FileGroupRef& file);
  void send_first(TimePoint now, Work& work);
  void send(TimePoint now, std::deque<Held>& held);
  static void move_before(Heads& heads, std::optional<Sequence> end, std::vector<FileGroupRef>& to);

  FarSide& side_;
  Sequence next_sequence_ = 1;
  KeyedMap<MessageId, Promise> promises_;  // without the server's answer
  std::unordered_map<OpenKey, std::size_t, OpenKeyHash> promised_through_;
  std::map<std::uint64_t, Promise> own_;  // CLOSEs of our own
  std::set<Sequence> all_promises_;
  std::unordered_map<const FileGroup*, Work> work_;
  std::deque<Held> barriers_;          // requests that wait for all earlier ones, and delay all later ones
  std::set<Sequence> held_;            // all that wait
  KeyedMap<MessageId, Scope> scopes_;  // of those, for CANCELs
  Heads behind_barrier_, behind_any_;  // the latter: behind promises of names that may match any file
  std::size_t held_bytes_ = 0;
  FarRoom room_{side_};
  OplockReturns returns_{side_, [this](const OpenKey& open) { return promised_through_.contains(open); }};
};

}  // namespace longhaul::smb::smb2
