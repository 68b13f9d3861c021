// SPDX-License-Identifier: Apache-2.0
// The near side's store of file bytes that the far half pushed before they were requested. waiting_reads.h
// has the client's READs that wait for such bytes. Stamps decide which data may serve which READ; the halves
// implement the protocols.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <variant>

#include "codecs/slice.h"
#include "proxy/link/types.h"
#include "proxy/modules/ahead/messages.h"
#include "proxy/modules/ahead/pieces.h"
#include "proxy/modules/ahead/waiting_reads.h"

namespace longhaul::ahead {

// Bytes stored by all flows of a site. Shared by the caches of one loop.
struct AheadAccount {
  std::uint64_t held_bytes = 0;
  std::uint64_t most_bytes = 256ull << 20;
};

struct AheadBounds {
  // Twice the amount read ahead for one open: half of it may have been read already, and is kept for the next
  // reader.
  std::uint64_t open_bytes = 32 << 20;
  std::uint64_t flow_bytes = 64 << 20;
};

class AheadCache {
 public:
  // No file is that large: a READ beyond it is not asked for here, because no data there is accepted.
  static constexpr std::uint64_t kMostOffset = 1ull << 62;

  explicit AheadCache(std::shared_ptr<AheadAccount> account, AheadBounds bounds = {});
  ~AheadCache();
  AheadCache(const AheadCache&) = delete;
  AheadCache& operator=(const AheadCache&) = delete;

  // An open that data may be pushed for; both stamps begin at zero on both sides.
  void opened(const OpenKey& open);
  bool knows(const OpenKey& open) const { return opens_.contains(open); }
  // The open no longer exists. READs that wait for its data may still receive it.
  void forget(const OpenKey& open);

  // This half makes all data stored for the open void. Returns the epoch to send (Drop).
  std::uint32_t drop(const OpenKey& open);
  void far_dropped(const OpenKey& open, std::uint32_t epoch);
  std::optional<Stamp> stamp(const OpenKey& open) const;
  std::uint64_t seen(const OpenKey& open) const;

  // An Ahead message with its bytes. They are stored only if their stamp is the open's; older ones complete
  // READs that wait under the same stamp.
  void pushed(const Ahead& ahead, const Slice& bytes, link::TimePoint now = {});
  // Bytes of a frame that answered a READ of this stamp: they can serve the next READ like pushed ones.
  void passed(const OpenKey& open, Stamp stamp, std::uint64_t offset, const Slice& bytes,
              link::TimePoint now = {});
  // Whether bytes or a file end that would serve this READ arrived before `time`: for protocols that must
  // limit the age of data that nothing else makes void.
  bool has_older(const OpenKey& open, std::uint64_t offset, std::uint32_t length, link::TimePoint time) const;

  // A READ of the client. Complete data is returned at once; otherwise the READ waits, and the missing range
  // is sent to the far half before the READ's frame. The open must be known.
  std::variant<ReadData, Asked> ask(const OpenKey& open, MessageNumber message, std::uint64_t offset,
                                    std::uint32_t length);
  using Ready = WaitingReads::Ready;
  using Answered = WaitingReads::Answered;
  std::optional<Ready> poll_ready() { return waiting_.poll_ready(); }
  // The server's own response is under way: pushed bytes no longer complete this READ.
  void forwarded(MessageNumber message) { waiting_.forwarded(message); }
  // The server's own response arrived: the READ no longer waits. Returns its range and stamp if it did wait.
  std::optional<Answered> answered(MessageNumber message) { return waiting_.answered(message); }
  bool waits(MessageNumber message) const { return waiting_.contains(message); }
  std::size_t waiting() const { return waiting_.size(); }
  std::uint64_t waiting_bytes() const { return waiting_.held_bytes(); }

  // The limit of unread data for this client: what it has now, and a quarter of what all flows leave.
  // Returned when it has changed by an eighth; nullopt while no file is open.
  std::optional<std::uint64_t> poll_allowance();

  std::uint64_t held_bytes() const { return held_bytes_; }
  std::uint64_t wasted_bytes() const { return wasted_bytes_; }  // pushed, and dropped without being read

 private:
  struct Piece {
    Slice bytes;
    link::TimePoint came{};
    bool read = false;  // completely, at least once
  };
  struct Open {
    Stamp stamp;
    std::map<std::uint64_t, Piece> pieces;  // disjoint, by offset
    std::set<std::uint64_t> read;           // offsets of the pieces that were read
    std::optional<std::uint64_t> end_of_file;
    link::TimePoint end_came{};  // when it first arrived since data was last void
    std::uint64_t held_bytes = 0;
    std::uint64_t seen = 0;  // number of Ahead messages
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  // The bookkeeping of a piece costs memory too; the number of smaller pieces is limited.
  static constexpr std::size_t kMostSmallPieces = 1024, kUsualPieceBytes = 1024;

  void clear(Open& open);
  bool make_room(Open& open, std::uint64_t bytes);
  void insert(Open& open, std::uint64_t offset, const Slice& bytes, link::TimePoint now);
  void release(Open& open, Pieces::iterator piece);
  void now_read(const OpenKey& key, Open& open, Pieces::iterator piece);
  void give_up_read(Open& open, const Open& wanting, std::uint64_t bytes);
  bool lacks(const Open& open, std::uint64_t bytes) const;

  std::shared_ptr<AheadAccount> account_;
  AheadBounds bounds_;
  std::unordered_map<OpenKey, Open, OpenKeyHash> opens_;
  WaitingReads waiting_;
  std::set<OpenKey> with_read_;  // opens with pieces that were read
  std::uint64_t held_bytes_ = 0;
  std::uint64_t wasted_bytes_ = 0;
  std::uint64_t allowance_;  // as last returned by poll_allowance()
};

}  // namespace longhaul::ahead
