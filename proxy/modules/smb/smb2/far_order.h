// SPDX-License-Identifier: Apache-2.0
// The far half's part for order: everything that the client believes done is done before dependent requests
// reach the server. Turns the server's answers to promised WRITEs and CLOSEs into Kept, holds ordering points
// until then, queries the free space of the server's disk, and gives back oplocks that were held on the
// client's behalf. near_writes.h and near_metadata.h decide what may be promised.
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

#include "proxy/modules/promises/disk_room.h"
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
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  void stream_ended(TimePoint now) override;
  bool quiet() const override { return promises_.empty() && held_.empty(); }
  bool owes() const override { return !promises_.empty(); }

  // A CLOSE of our own for a file that the client did not open: later requests wait for it as for a promised
  // one. The numbers are far_opens.h's.
  void begin_own(std::uint64_t number, const FileName& name);
  void end_own(TimePoint now, std::uint64_t number);

  // Whether WRITEs of this open may be promised, and it is time to query the room.
  void ask_room(TimePoint now, const Open& open);

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
  bool take_break(TimePoint now, const Message& message);
  struct GivingBack {
    OplockLevel level = OplockLevel::none;
    bool near_done = false;
    bool alone = false;  // it may be given back without the near half, after a time
    TimePoint fence{};   // otherwise it is fenced then
  };
  void near_is_done(GivingBack& giving);
  void drop_done_fences();
  void give_back(TimePoint now, const OpenKey& open);
  void give_back_all(TimePoint now);

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
  DiskQuestions questions_;
  std::map<OpenKey, GivingBack> giving_back_;
  std::size_t alone_ = 0;  // of these, those that the near half has not confirmed
  // For oplocks that may not be given back alone: the near half's deadline. In the order of time.
  std::deque<std::pair<TimePoint, OpenKey>> fences_;
  std::set<OpenKey> back_unsent_;  // that had no id
  bool ended_ = false;             // the near half sends nothing more
};

}  // namespace longhaul::smb::smb2
