// SPDX-License-Identifier: Apache-2.0
// The disk dictionary of one session: writes new parts of the histories as segments, agrees with the twin on
// the segments that both have, and loads useful ones before the blocks that refer to them. The store keeps
// segments; the encoder finds repeats once they are in the history.
#pragma once
#include <map>
#include <unordered_map>

#include "codecs/keyed_hash.h"
#include "codecs/reduction/block_decoder.h"
#include "codecs/reduction/block_encoder.h"
#include "codecs/reduction/common_segments.h"
#include "codecs/reduction/peer_segments.h"
#include "codecs/reduction/sealing.h"
#include "codecs/reduction/segments.h"

namespace longhaul::reduction {

class DiskTier final : private SegmentListener {
 public:
  struct Sites {
    SiteId own{}, twin{};
  };
  static constexpr std::uint32_t kSealBytes = 4u << 20;  // of a segment, if enough is there
  static constexpr std::uint32_t kLoadBytes = 1u << 20;  // at once
  static constexpr std::size_t kMaxLoads = 64;           // maximum that one block may name
  static constexpr std::uint64_t kMaxLoadedBytes = 16u << 20;

  // The session may read the segments of `twin`, and those that `rights` names in addition.
  DiskTier(SegmentStore& store, const Sites& sites, SegmentRights rights, std::uint64_t epoch,
           BlockEncoder& encoder, BlockDecoder& decoder);
  ~DiskTier() override;
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  // ---- What this side sends.
  // The stream's next block is about to be encoded: what was read for it goes into the history.
  void before_encoding(std::uint64_t stream, const ReductionStages& stages);
  // The block was just encoded.
  void on_encoded(std::uint64_t stream, const ReductionStages& stages, const BlockHeader& header);
  void on_held() {
    seal(Rest::stays);
    go_on_sealing();
  }
  // Nothing was sent for a while: the remaining history becomes a segment.
  void on_quiet();
  // The session is about to end: the same, on both sides.
  void finish();
  bool finished() const { return !remembering_ && !has_message() && !has_work(); }
  // The history starts again.
  void on_cleared();
  // The same, and the twin drops the segments of this link from its disk. Dropping those on this side's disk
  // is up to the store's owner, afterwards.
  void forget_both();
  // How many bytes the twin dropped; no result until it has answered.
  std::optional<std::uint64_t> forgotten_by_twin() const {
    return forget_asked_ ? std::nullopt : std::optional(forgotten_by_twin_);
  }

  // ---- What the twin sends.
  void on_twin_epoch(std::uint64_t epoch);
  // Loads what the block needs from disk. Done: all that is available is in the history; otherwise
  // poll_ready() names the stream later.
  enum class Brought { waits, done };
  Result<Brought> bring(std::uint64_t stream, const BlockHeader& header, Bytes encoded);
  void on_decoded(std::uint64_t stream) { brought_.erase(stream); }
  std::optional<std::uint64_t> poll_ready();

  // ---- Both ways.
  // A block came or went: so much may be done for segments in the making, at the next good moment.
  void on_block(std::size_t plain_bytes) { may_seal_bytes_ += kSealingSpeed * plain_bytes; }

  void set_rights(SegmentRights rights);

  // Deferred work, so that no message and no quiet moment costs more than a bounded piece of it: the owner
  // calls work() again, after serving others, as long as there is some.
  bool has_work() const { return (hurry_ && !sealing_.empty()) || forgetting_; }
  void work();

  void forget(std::uint64_t stream);
  // Only the direction that this side sends has ended.
  void forget_sending(std::uint64_t stream) { forget_flow(stream); }

  // Types that the other parts do not know.
  Result<void> on_message(const OtherMessage& message);
  bool has_message() const {
    return !have_.empty() || !lost_.empty() || !messages_.empty() || !cannot_.empty() || greeting_due_;
  }
  std::optional<Slice> poll_message();
  // Messages that must precede the decoder's requests for blocks that cannot be restored without them.
  std::optional<Slice> poll_urgent();

  std::size_t common_segments() const { return common_.size(); }
  // Data from disk that waits for a block of its stream, at most an eighth of the history; and names.
  std::uint64_t memory_bytes() const { return come_bytes_ + common_.memory_bytes(); }

 private:
  enum Type : std::uint8_t {
    kHave = 9,
    kLost,
    kSealed,
    kCannot,
    kRemember,
    kRemembered,
    kForget,
    kForgotten
  };
  using Id = CommonSegments::Id;
  struct Piece {  // of the data that a cursor has loaded
    std::uint64_t ring_offset;
    std::uint64_t position;  // counted from the cursor's start
    std::uint64_t length;
  };
  // A stream reads along segments.
  struct Cursor {
    std::uint64_t serial = 0;
    SegmentName segment;
    std::uint32_t begin = 0, next = 0;               // of the segment: requested
    std::uint64_t asked = 0, brought = 0, used = 0;  // positions
    std::uint64_t ahead = 0;
    std::deque<Piece> pieces;
    bool over = false;  // nothing follows
  };
  struct Asked {  // a load for the encoder
    std::uint64_t stream, serial;
    Id segment;
    std::uint32_t offset, length;
  };
  struct Come {
    Asked asked;
    std::optional<Slice> bytes;
  };
  struct Flow {
    std::optional<Cursor> cursor;
    unsigned useless = 0;   // cursors in a row without use
    std::size_t asked = 0;  // loads under way
    // Completed loads, in order. They enter the history with a block that names them and not earlier: history
    // that the twin is not told about is useless, and would only take the place of useful history.
    std::deque<Come> come;
    std::uint64_t latest_block = 0;  // in the order of all streams' blocks
    // Loads that the next block names, whichever cursor requested them: at most kMaxLoads, of
    // kMaxLoadedBytes.
    std::size_t announced = 0;
    std::uint64_t announced_bytes = 0;
  };
  struct Bringing {  // a load for the decoder
    std::uint64_t stream, ring_offset;
    std::uint32_t length;
    Id segment;
    std::uint32_t offset;
  };
  struct Loaded {  // into the encoder's history
    std::uint64_t length, ring_offset;
  };
  using Run = std::pair<Id, std::uint32_t>;  // of a segment, from this offset
  struct Announced {                         // the same, by its place in the history
    Run run;
    std::uint64_t length, stream;
    bool given_up = false;
  };
  enum class Rest { stays, sealed };

  void on_stored(const SegmentName& name) override;
  void on_dropped(const SegmentName& name) override;
  void on_loaded(LoadId load, std::optional<Slice> bytes) override;
  CommonSegments::Whose whose(const SegmentName& name) const {
    return store_.belongs(name) ? CommonSegments::Whose::peers : CommonSegments::Whose::shared;
  }

  void look_up(std::uint64_t stream, Flow& flow, Bytes plain);
  bool in_memory(Id id, const HookHit& hit) const;
  void follow(Cursor& cursor);
  void ask_ahead(std::uint64_t stream, Flow& flow);
  void forget_out_of_reach();
  static bool wanted(const Flow& flow, const Asked& asked);
  void drop_come(Flow& flow);
  void make_room(const Flow& flow, std::uint64_t bytes);
  std::uint64_t most_waiting() const { return encoder_.ring()->size() / 8; }
  void forget_flow(std::uint64_t stream);
  void append_loaded(const Asked& asked, Flow& flow, Bytes bytes);
  void brought_one(const Bringing& one, std::optional<Slice> bytes);
  void start_loads();
  Result<void> on_sealed(ByteReader& in);
  Result<void> on_cannot(ByteReader& in);
  Result<void> on_forgotten(ByteReader& in);
  void say(Type type);
  void forget_some();
  void seal(Rest rest);
  void go_on_sealing();
  void seal_all();
  void go_on(std::size_t bytes);
  void keep(SealingSegment::Sealed sealed, SealingSegment::Of of);
  void begin_sealing(SealingSegment::Of of, const SegmentName& name);
  void forget_sealing(SealingSegment::Of of);
  void answer_what_is_done();

  Sites sites_;
  PeerSegments store_;
  std::uint64_t epoch_, twin_epoch_ = 0;
  BlockEncoder& encoder_;
  BlockDecoder& decoder_;

  CommonSegments common_;

  bool greeting_due_ = true;  // there is a disk here
  bool twin_has_disk_ = false;
  IntervalSet fresh_;  // of the history: new, and not sealed yet
  // Segments in the making. They may use several times as many bytes of work as blocks carry, so that sealing
  // keeps up, and no block waits for more than a part of one.
  static constexpr std::size_t kSealingSpeed = 3;
  std::deque<SealingSegment> sealing_;
  std::uint64_t sealing_bytes_ = 0;  // of all of them
  std::size_t may_seal_bytes_ = 0;
  bool hurry_ = false;  // not only when blocks pass
  // What the encoder's twin had answered in total when the history was last searched.
  std::uint64_t sealed_at_ = 0, sealed_rest_at_ = 0;
  SlicePool pool_{kSealBytes + dedup::kOverread, 1};
  KeyedMap<std::uint64_t, Flow> flows_;
  std::unordered_map<LoadId, Asked> asked_;
  std::uint64_t come_bytes_ = 0;  // in all flows
  std::uint64_t blocks_ = 0;
  std::uint64_t serial_ = 0;
  // Loaded segments in reach, the latest if one was loaded twice; and the ranges by ring offset.
  std::map<Run, Loaded> loaded_;
  std::map<std::uint64_t, Announced> announced_;

  KeyedMap<std::uint64_t, std::size_t> brought_;  // by stream: loads that wait or are under way
  std::deque<Bringing> to_bring_;                 // wait until others have come
  std::unordered_map<LoadId, Bringing> bringing_;
  std::uint64_t bringing_bytes_ = 0;
  std::deque<std::uint64_t> ready_;

  std::deque<Id> have_, lost_;  // to be sent
  std::deque<Slice> messages_, cannot_;
  bool ask_to_remember_ = false;  // the twin is to be asked to seal its history,
  bool remembering_ = false;      // or was asked,
  bool remembered_ = false;       // and has done so; its segments are being made here
  bool remember_due_ = false;     // the twin asked
  // Segments that the twin was asked to drop, and again meanwhile; how many bytes they had.
  bool forget_asked_ = false, forget_asked_again_ = false;
  std::uint64_t forgotten_by_twin_ = 0;
  // Segments that the twin asked to drop: this many are left, and this many bytes were dropped.
  bool forgetting_ = false;
  std::size_t to_forget_ = 0;
  std::uint64_t forgotten_bytes_ = 0;
  std::vector<Hook> hooks_;
  std::vector<std::uint64_t> fingerprints_;
  std::vector<HookHit> hits_;
};

}  // namespace longhaul::reduction
