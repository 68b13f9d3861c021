// SPDX-License-Identifier: Apache-2.0
// The far half's part for order: what the client believes done is done before anything that builds on it
// reaches the server. Turns the server's answers to promised WRITEs and CLOSEs into Kept, holds ordering
// points until then, asks the server for the room on its disk, and gives back oplocks that were held on the
// client's behalf. What may be promised is decided in near_writes.h and near_metadata.h.
//
// A request waits for promises that were made before it:
// - of the same file, through any open: CLOSE, FLUSH, LOCK, SET_INFO, QUERY_INFO, a CREATE of its name, a
// READ of or
//   before what is being written, and a WRITE, promised or not, over another;
// - of everything: LOGOFF, TREE_DISCONNECT, SESSION_SETUP, QUERY_DIRECTORY, IOCTL, renames and links,
// questions for
//   space and quota, compounds, the acknowledgement of a break, the end of the client's stream;
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
  void on_ids_freed(TimePoint now) override { give_back(now); }
  void on_timeout(TimePoint now) override { give_back(now); }
  std::optional<TimePoint> next_timeout() const override;
  void stream_ended(TimePoint now) override;
  bool quiet() const override { return promises_.empty() && held_.empty(); }
  bool owes() const override { return !promises_.empty(); }

  // A CLOSE of our own of a file that the client does not know to be open: what comes behind it waits as for
  // a promised one. The numbers are far_opens.h's.
  void begin_own(std::uint64_t number, const FileName& name);
  void end_own(TimePoint now, std::uint64_t number);

  // Something is promised and not done for this file: data read from it now may be older than the client
  // believes.
  bool busy(const FileName& name) const;
  std::size_t held_bytes() const { return held_bytes_; }  // of frames

 private:
  using Sequence = std::uint64_t;  // the order in which promises and held requests came
  struct Promise {
    OpenKey open;
    Sequence sequence = 0;
    bool write = false;  // or a CLOSE
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint16_t credits = 0;  // granted with interim answers
  };
  // What is promised through one open and not done.
  struct Work {
    std::optional<FileName> name;  // none: not known, so it may be any file
    std::map<Sequence, MessageId> promises;
    std::multimap<std::uint64_t, MessageId> writes;  // by offset
    std::uint64_t longest_write = 0;
  };
  // What a request must wait for.
  struct Scope {
    enum class Kind : std::uint8_t { nothing, range, file, everything };
    Kind kind = Kind::everything;
    std::optional<FileName> name;  // none: any file
    std::uint64_t offset = 0, length = 0;
  };
  struct Held {
    Message message;
    Scope scope;
    Sequence sequence = 0;
  };

  Scope scope_of(const Message& message) const;
  bool waits(const Scope& scope, Sequence before) const;
  bool overlaps(const Work& work, const Scope& scope, Sequence before) const;
  static bool same(const std::optional<FileName>& a, const std::optional<FileName>& b);
  void begin(Promise& promise, MessageId id, const Message& message);
  void done(TimePoint now, MessageId id, const Element& answer);
  void hold(Held held);
  void release(TimePoint now);
  void ask_room(TimePoint now, const Open& open);
  bool take_break(const Message& message);
  void give_back(TimePoint now);
  std::optional<TimePoint> alone_at(const Open& open) const;

  FarSide& side_;
  Sequence next_sequence_ = 1;
  std::unordered_map<MessageId, Promise> promises_;  // without the server's answer
  std::map<OpenKey, Work> work_;
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
  DiskQuestions questions_;
  struct GivingBack {
    OpenKey open;
    OplockLevel level = OplockLevel::none;
    bool near_done = false;
  };
  std::vector<GivingBack> giving_back_;
  bool ended_ = false;  // the near half tells nothing more
};

}  // namespace longhaul::smb::smb2
