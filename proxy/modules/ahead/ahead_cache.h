// SPDX-License-Identifier: Apache-2.0
// The near side's store of file bytes that the far half pushed before they were requested; waiting_reads.h
// has the client's READs that wait for such bytes. Stamps decide which data may answer which READ; the halves
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

// Bytes held by all flows of a site. Shared by the caches of one loop.
struct AheadAccount {
  std::uint64_t held_bytes = 0;
  std::uint64_t most_bytes = 256ull << 20;
};

struct AheadBounds {
  // Twice the amount fetched ahead of one open: half of it may have been read already, and is kept for the
  // next reader.
  std::uint64_t open_bytes = 32 << 20;
  std::uint64_t flow_bytes = 64 << 20;
};

class AheadCache {
 public:
  explicit AheadCache(std::shared_ptr<AheadAccount> account, AheadBounds bounds = {});
  ~AheadCache();
  AheadCache(const AheadCache&) = delete;
  AheadCache& operator=(const AheadCache&) = delete;

  // An open whose data may be ahead; both stamps begin at zero on both sides.
  void opened(const OpenKey& open);
  bool knows(const OpenKey& open) const { return opens_.contains(open); }
  // The open no longer exists. READs that wait for its data may still get them.
  void forget(const OpenKey& open);

  // All data held for it is void, because of this half: returns the epoch to send (Drop).
  std::uint32_t drop(const OpenKey& open);
  void far_dropped(const OpenKey& open, std::uint32_t epoch);
  std::optional<Stamp> stamp(const OpenKey& open) const;
  std::uint64_t seen(const OpenKey& open) const;

  // An Ahead message with its bytes. Kept only if its stamp is the open's; older ones answer the READs that
  // wait under their stamp.
  void pushed(const Ahead& ahead, const Slice& bytes, link::TimePoint now = {});
  // Bytes of a frame that answered a READ of this stamp: they can answer the next READ like pushed ones.
  void passed(const OpenKey& open, Stamp stamp, std::uint64_t offset, const Slice& bytes,
              link::TimePoint now = {});
  // Something that would answer this READ, bytes or the file's end, arrived before `time`: for protocols that
  // must bound the age of what nothing else voids.
  bool has_older(const OpenKey& open, std::uint64_t offset, std::uint32_t length, link::TimePoint time) const;

  // The client READs. Complete data answers at once; otherwise the READ waits, and the far half gets the
  // missing range before its frame. The open must be known.
  std::variant<ReadData, Asked> ask(const OpenKey& open, MessageNumber message, std::uint64_t offset,
                                    std::uint32_t length);
  using Ready = WaitingReads::Ready;
  using Answered = WaitingReads::Answered;
  std::optional<Ready> poll_ready() { return waiting_.poll_ready(); }
  // The server's own answer is under way: pushed bytes no longer complete this READ.
  void forwarded(MessageNumber message) { waiting_.forwarded(message); }
  // The server's own answer arrived: the READ waits no more. Returns its range and stamp if it did wait.
  std::optional<Answered> answered(MessageNumber message) { return waiting_.answered(message); }
  bool waits(MessageNumber message) const { return waiting_.contains(message); }
  std::size_t waiting() const { return waiting_.size(); }
  std::uint64_t waiting_bytes() const { return waiting_.held_bytes(); }

  // The permitted amount of unread data for this client: what it has now, and a quarter of what all flows
  // leave. Reported when it has changed by an eighth; nothing while no file is open.
  std::optional<std::uint64_t> poll_allowance();

  std::uint64_t held_bytes() const { return held_bytes_; }
  std::uint64_t wasted_bytes() const { return wasted_bytes_; }  // pushed, and dropped unread

 private:
  struct Piece {
    Slice bytes;
    link::TimePoint came{};
    bool read = false;  // to its end, at least once
  };
  struct Open {
    Stamp stamp;
    std::map<std::uint64_t, Piece> pieces;  // disjoint, by offset
    std::set<std::uint64_t> read;           // the offsets of the pieces that were
    std::optional<std::uint64_t> end_of_file;
    link::TimePoint end_came{};  // the first time since data was last void
    std::uint64_t held_bytes = 0;
    std::uint64_t seen = 0;  // Ahead messages
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  // The bookkeeping of a piece costs memory too; many smaller pieces are not kept.
  static constexpr std::size_t kMostSmallPieces = 1024, kUsualPieceBytes = 1024;
  static constexpr std::uint64_t kMostOffset = 1ull << 62;

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
  std::set<OpenKey> with_read_;  // opens that hold pieces that were read
  std::uint64_t held_bytes_ = 0;
  std::uint64_t wasted_bytes_ = 0;
  std::uint64_t allowance_;  // as last reported
};

}  // namespace longhaul::ahead
