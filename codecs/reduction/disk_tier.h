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
  static constexpr std::size_t kMaxLoads = 64;           // that one block may name
  static constexpr std::uint64_t kMaxLoadedBytes = 16u << 20;

  // Segments of `twin` may be read, and those that `rights` names beside them.
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
  // Nothing was sent for a while: what there is becomes a segment.
  void on_quiet();
  // The session is about to end: the same, and by the twin too.
  void finish();
  bool finished() const { return !remembering_ && !has_message() && !has_work(); }
  // The history begins anew.
  void on_cleared();
  // The same, and the twin drops from its disk what came over this link. Dropping what is on this side's is
  // the store's owner's affair, after this.
  void forget_both();
  // How many bytes the twin dropped; nothing as long as it has not answered.
  std::optional<std::uint64_t> forgotten_by_twin() const {
    return forget_asked_ ? std::nullopt : std::optional(forgotten_by_twin_);
  }

  // ---- What the twin sends.
  void on_twin_epoch(std::uint64_t epoch);
  // What the block needs from disk. Done: all that can be had is in the history; otherwise poll_ready() names
  // the stream.
  enum class Brought { waits, done };
  Result<Brought> bring(std::uint64_t stream, const BlockHeader& header, Bytes encoded);
  void on_decoded(std::uint64_t stream) { brought_.erase(stream); }
  std::optional<std::uint64_t> poll_ready();

  // ---- Both ways.
  // A block came or went: so much may be done for segments in the making, at the next good moment.
  void on_block(std::size_t plain_bytes) { may_seal_bytes_ += kSealingSpeed * plain_bytes; }

  void set_rights(SegmentRights rights);

  // What was put off, so that no message and no moment of silence costs more than a bounded piece of it at a
  // time: the owner calls work() again, after it has served others, as long as there is some.
  bool has_work() const { return (hurry_ && !sealing_.empty()) || forgetting_; }
  void work();

  void forget(std::uint64_t stream);
  // Only what this side sends is over.
  void forget_sending(std::uint64_t stream) { forget_flow(stream); }

  // Types that the other parts do not know.
  Result<void> on_message(const OtherMessage& message);
  bool has_message() const {
    return !have_.empty() || !lost_.empty() || !messages_.empty() || !cannot_.empty() || greeting_due_;
  }
  std::optional<Slice> poll_message();
  // What must be said before the decoder asks for the blocks that cannot be restored without it.
  std::optional<Slice> poll_urgent();

  std::size_t common_segments() const { return common_.size(); }
  // What came from disk and waits for a block of its stream, at most an eighth of the history; and names.
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
  struct Piece {  // of what a cursor has brought
    std::uint64_t ring_offset;
    std::uint64_t position;  // counted from where the cursor began
    std::uint64_t length;
  };
  // A stream reads along segments.
  struct Cursor {
    std::uint64_t serial = 0;
    SegmentName segment;
    std::uint32_t begin = 0, next = 0;               // of the segment: what was asked for
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
    unsigned useless = 0;   // cursors in a row from which nothing came
    std::size_t asked = 0;  // loads that have not come yet
    // Loads that came, in order. They go into the history with a block that names them and not before: what
    // the twin never hears of can be referred to by nobody, and would only take the place of what can.
    std::deque<Come> come;
    std::uint64_t latest_block = 0;  // in the order of all streams' blocks
    // Loads that the next block names, whatever cursor asked for them: at most kMaxLoads, of kMaxLoadedBytes.
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
  struct Announced {                         // the same, by where it stands in the history
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

  bool greeting_due_ = true;  // that there is a disk here
  bool twin_has_disk_ = false;
  IntervalSet fresh_;  // of the history: new, and not sealed yet
  // Segments in the making. Several times as many of their bytes as of blocks that come and go, so that it
  // keeps up, and no block waits for more than a part of one.
  static constexpr std::size_t kSealingSpeed = 3;
  std::deque<SealingSegment> sealing_;
  std::uint64_t sealing_bytes_ = 0;  // of all of them
  std::size_t may_seal_bytes_ = 0;
  bool hurry_ = false;  // not only as blocks go by
  // What the encoder's twin had answered in all when its history was last looked through.
  std::uint64_t sealed_at_ = 0, sealed_rest_at_ = 0;
  SlicePool pool_{kSealBytes + dedup::kOverread, 1};
  KeyedMap<std::uint64_t, Flow> flows_;
  std::unordered_map<LoadId, Asked> asked_;
  std::uint64_t come_bytes_ = 0;  // in all flows
  std::uint64_t blocks_ = 0;
  std::uint64_t serial_ = 0;
  // What was loaded and is in reach, the latest where a run was loaded twice; and the runs by ring offset.
  std::map<Run, Loaded> loaded_;
  std::map<std::uint64_t, Announced> announced_;

  KeyedMap<std::uint64_t, std::size_t> brought_;  // by stream: loads that wait or are under way
  std::deque<Bringing> to_bring_;                 // wait until others have come
  std::unordered_map<LoadId, Bringing> bringing_;
  std::uint64_t bringing_bytes_ = 0;
  std::deque<std::uint64_t> ready_;

  std::deque<Id> have_, lost_;  // to be told
  std::deque<Slice> messages_, cannot_;
  bool ask_to_remember_ = false;  // the twin is to be asked to seal what it has,
  bool remembering_ = false;      // or was,
  bool remembered_ = false;       // and has; what it sealed is being made here
  bool remember_due_ = false;     // the twin asked
  // What the twin was asked to drop, and again meanwhile; how much that was.
  bool forget_asked_ = false, forget_asked_again_ = false;
  std::uint64_t forgotten_by_twin_ = 0;
  // What the twin asked to drop: so many segments are left of it, and so many bytes went.
  bool forgetting_ = false;
  std::size_t to_forget_ = 0;
  std::uint64_t forgotten_bytes_ = 0;
  std::vector<Hook> hooks_;
  std::vector<std::uint64_t> fingerprints_;
  std::vector<HookHit> hits_;
};

}  // namespace longhaul::reduction
