// SPDX-License-Identifier: Apache-2.0
// SMB on ports 445 and 139: cuts both directions into frames, waits for the NEGOTIATE that decides the
// dialect, gives the frames to that dialect's half (smb1/, smb2/), and steps aside where nothing is
// understood or nothing is to gain.
#pragma once
#include <memory>
#include <vector>

#include "proxy/modules/smb/ahead_cache.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/lost_writes.h"

namespace longhaul::smb {
namespace smb2 {
class Channels;
}

// Of what the halves say to each other: another one is another module.
inline constexpr std::uint64_t kModuleVersion = 8;

enum class Side : std::uint8_t { near, far };  // the client's, the server's

// What the flows of a site share.
struct Site {
  std::shared_ptr<AheadAccount> ahead = std::make_shared<AheadAccount>();
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  std::shared_ptr<smb2::Channels> channels;
  Site();
};

class SmbModule final : public modules::Module {
 public:
  SmbModule(Side side, const modules::Ends& ends, const Site& site);

  void on_surroundings(TimePoint now, const modules::Surroundings& surroundings) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint now, Slice message) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_stepped_aside(TimePoint now) override;
  void twin_lost() override {
    if (half_) half_->twin_lost();
  }
  void on_timeout(TimePoint now) override;
  std::optional<modules::Output> poll_output() override { return out_.poll(); }
  std::optional<TimePoint> next_timeout() const override;
  std::size_t held_bytes() const override;
  std::size_t queued_bytes() const override { return half_ ? half_->queued_bytes() : 0; }
  std::size_t state_bytes() const override { return half_ ? half_->state_bytes() : 0; }
  void give_up_memory(TimePoint now) override;
  const modules::Counters& counters() const override;
  modules::Reason reason() const override;

 private:
  // Of one way: from the LAN into the stream, or from the stream to the LAN.
  enum class State : std::uint8_t {
    frames,  // cut, and given to the half
    bytes,   // not frames any more, or of no interest: as they come
    aside,   // the host does not ask any more
  };

  void frame(TimePoint now, const Frame& frame, modules::Way way);
  bool decide(TimePoint now, const Frame& frame, modules::Way way);
  void make_smb1_half();
  void take_frames(TimePoint now, modules::Way way);
  void lan_opaque(TimePoint now, modules::Reason reason);
  void stream_opaque(TimePoint now);
  void review(TimePoint now);
  Slice take_attached(Slice bytes);

  Side side_;
  Site site_;
  modules::Ends ends_;
  Outputs out_;
  modules::Surroundings surroundings_;
  std::unique_ptr<Half> half_;  // none until the dialect is known
  // An SMB1 NEGOTIATE that offers SMB2 too: its answer decides.
  std::optional<Frame> offer_;

  FrameSplitter lan_;
  FrameSplitter stream_;
  State lan_state_ = State::frames, stream_state_ = State::frames;
  bool lan_ended_ = false, stream_ended_ = false;

  // A message of the twin whose raw bytes have not all come.
  std::optional<TwinMessage> attaching_;
  Slice attached_;
  std::byte* attached_room_ = nullptr;
  std::size_t attached_missing_ = 0;

  bool gives_up_ = false;  // there is no memory to go on as before
  modules::Reason reason_ = reasons::optimised;
  modules::Counters counters_;  // without a half
  mutable modules::Counters shown_;
};

}  // namespace longhaul::smb
