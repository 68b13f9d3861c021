// SPDX-License-Identifier: Apache-2.0
// The disk dictionary of one session: writes new parts of the histories as segments, and agrees with the twin
// on the segments that both have. Useful ones are loaded before the blocks that refer to them, for the
// encoder by disk_read_ahead.h and for the decoder by twin_loads.h. The store has the segments; the encoder
// finds repeats once they are in the history.
#pragma once
#include "codecs/reduction/disk_read_ahead.h"
#include "codecs/reduction/sealing_queue.h"
#include "codecs/reduction/twin_loads.h"

namespace longhaul::reduction {

class DiskTier final : private SegmentListener {
 public:
  struct Sites {
    SiteId own{}, twin{};
  };

  // The session may read the segments of `twin`, and in addition those in `rights`.
  DiskTier(SegmentStore& store, const Sites& sites, SegmentRights rights, std::uint64_t epoch,
           BlockEncoder& encoder, BlockDecoder& decoder);
  ~DiskTier() override;
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  // ---- What this side sends.
  // The stream's next block is about to be encoded: data read for it enters the history.
  void before_encoding(std::uint64_t stream, const ReductionStages& stages) {
    ahead_.before_encoding(stream, stages);
  }
  // The block was just encoded.
  void on_encoded(std::uint64_t stream, const ReductionStages& stages, const BlockHeader& header);
  void on_held() {
    seal(FreshHistory::Rest::stays);
    go_on_sealing();
  }
  // Nothing was sent for a while: the remaining history becomes a segment.
  void on_quiet();
  // The session is about to end: the same, on both sides.
  void finish();
  bool finished() const { return !remembering_ && !has_message() && !has_work(); }
  // The history is restarted.
  void on_cleared();
  // The same, and the twin drops the segments of this link from its disk. Afterwards the store's owner may
  // drop those on this side's disk.
  void forget_both();
  // How many bytes the twin dropped; nullopt until it has responded.
  std::optional<std::uint64_t> forgotten_by_twin() const {
    return forget_asked_ ? std::nullopt : std::optional(forgotten_by_twin_);
  }

  // ---- What the twin sends.
  void on_twin_epoch(std::uint64_t epoch);
  // Loads that its blocks need from disk.
  TwinLoads& loads() { return loads_; }

  // ---- Both ways.
  // A block was sent or received: that much work may be done for segments in the making, at the next good
  // moment.
  void on_block(std::size_t plain_bytes) { sealing_.earn(plain_bytes); }

  void set_rights(SegmentRights rights);

  // Deferred work, so that no message and no quiet moment costs more than a limited piece of it: the owner
  // calls work() again, after serving others, as long as has_work().
  bool has_work() const { return (hurry_ && !sealing_.empty()) || forgetting_; }
  void work();

  void forget(std::uint64_t stream) {
    ahead_.forget(stream);
    loads_.forget(stream);
  }
  // Only the direction that this side sends has ended.
  void forget_sending(std::uint64_t stream) { ahead_.forget(stream); }

  // Types that the other parts do not process.
  Result<void> on_message(const OtherMessage& message);
  bool has_message() const {
    return !have_.empty() || !lost_.empty() || !messages_.empty() || loads_.has_message() || greeting_due_;
  }
  std::optional<Slice> poll_message();
  // Messages that must precede the decoder's requests for blocks that cannot be restored without them.
  std::optional<Slice> poll_urgent() { return loads_.poll_message(); }

  std::size_t common_segments() const { return common_.size(); }
  // Data that was read ahead, at most an eighth of the history; and segment names.
  std::uint64_t memory_bytes() const { return ahead_.memory_bytes() + common_.memory_bytes(); }

 private:
  void on_stored(const SegmentName& name) override;
  void on_dropped(const SegmentName& name) override;
  void on_loaded(LoadId load, std::optional<Slice> bytes) override;
  CommonSegments::Whose whose(const SegmentName& name) const {
    return store_.belongs(name) ? CommonSegments::Whose::peers : CommonSegments::Whose::shared;
  }

  void forget_some();
  void seal(FreshHistory::Rest rest);
  void go_on_sealing();
  void seal_all();
  void go_on(std::size_t bytes);
  void keep(SealingQueue::Done done);
  void begin_sealing(SealingSegment::Of of, const SegmentName& name);
  void answer_what_is_done();
  Result<void> on_sealed(Bytes body);
  Result<void> on_cannot(Bytes body);
  Result<void> on_forgotten(Bytes body);
  void say(DiskMessage type) { messages_.push_back(plain_message(type)); }

  Sites sites_;
  PeerSegments store_;
  std::uint64_t epoch_, twin_epoch_ = 0;
  BlockEncoder& encoder_;
  BlockDecoder& decoder_;

  CommonSegments common_;

  DiskReadAhead ahead_;
  TwinLoads loads_;

  bool greeting_due_ = true;  // announces that there is a disk here
  bool twin_has_disk_ = false;
  FreshHistory fresh_;
  SealingQueue sealing_;
  bool hurry_ = false;  // work even if no blocks pass

  std::deque<SegmentId> have_, lost_;  // to be sent
  std::deque<Slice> messages_;
  bool ask_to_remember_ = false;  // the twin is to be asked to seal its history,
  bool remembering_ = false;      // or was asked,
  bool remembered_ = false;       // and has done so; its segments are in the making here
  bool remember_due_ = false;     // the twin has asked
  // Segments that the twin was asked to drop, and again meanwhile; how many bytes they had.
  bool forget_asked_ = false, forget_asked_again_ = false;
  std::uint64_t forgotten_by_twin_ = 0;
  // Segments that the twin asked to drop: how many are left, and how many bytes were dropped.
  bool forgetting_ = false;
  std::size_t to_forget_ = 0;
  std::uint64_t forgotten_bytes_ = 0;
};

}  // namespace longhaul::reduction
