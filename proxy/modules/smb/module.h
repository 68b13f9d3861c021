// SPDX-License-Identifier: Apache-2.0
// SMB on ports 445 and 139: waits for the NEGOTIATE that decides the dialect, and passes the frames to that
// dialect's half (smb1/, smb2/). twin/framed_module.h splits frames and steps aside.
#pragma once
#include <memory>

#include "proxy/modules/ahead/ahead_cache.h"
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/seal/sealing.h"
#include "proxy/modules/smb/seal/server_keys.h"
#include "proxy/modules/twin/framed_module.h"

namespace longhaul::smb {
namespace smb2 {
class Channels;
}

// The version of the messages between the halves: a different one counts as another module.
inline constexpr std::uint64_t kModuleVersion = 15;

// State that the flows of a site share.
struct Site {
  std::shared_ptr<AheadAccount> ahead = std::make_shared<AheadAccount>();
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  std::shared_ptr<smb2::Channels> channels;
  // At the far side: to be read for each login, with the dialled address (seal/login.h).
  std::shared_ptr<seal::CurrentKeys> keys = std::make_shared<seal::CurrentKeys>();
  std::shared_ptr<seal::Unopened> unopened = std::make_shared<seal::Unopened>();
  Site();
};

// A connection's dialect and its half, for FramedModule.
class Dialects {
 public:
  using Frame = smb::Frame;
  using Splitter = FrameSplitter;
  using Message = TwinMessage;
  using Half = smb::Half;
  static constexpr const modules::ReasonText& kNotUnderstood = reasons::smb_not_understood;

  Dialects(Side side, const modules::Ends& ends, Site site, const modules::Address& dialled)
      : side_(side), site_(std::move(site)), ends_(ends), dialled_(dialled) {}

  FrameSplitter splitter() const { return FrameSplitter(framing_of_port(ends_.server_port)); }
  Result<std::optional<Frame>> next(FrameSplitter& splitter, modules::Way way) const;
  bool takes(TimePoint now, const Frame& frame, modules::Way way, Outputs& out,
             const Surroundings& surroundings);
  Half* half() const { return half_.get(); }
  std::size_t held_bytes() const { return offer_ ? offer_->bytes.size() : 0; }

  // As required by framed_module.h: signatures and encryption are handled here (seal/).
  std::optional<Frame> for_half(TimePoint now, const Frame& frame, modules::Way way, Outputs& out);
  bool takes_message(const TwinMessage& message, Outputs& out);
  bool changes_bytes() const { return sealing_ != nullptr; }
  std::optional<std::vector<Slice>> for_lan(Slice bytes) { return sealing_->to_lan(std::move(bytes)); }
  bool must_stay() const { return sealing_ && sealing_->is_needed(); }
  std::size_t state_bytes() const {
    return sealing_ ? sealing_->state_bytes() : used_ids_.state_bytes();
  }
  std::string_view detail() const { return sealing_ ? sealing_->detail() : std::string_view(); }
  modules::Reason reason() const { return sealing_ ? sealing_->reason() : reasons::optimised; }

 private:
  void make_half_for(TimePoint now, const Frame& frame, modules::Way way, Outputs& out,
                     const Surroundings& surroundings);
  void make_smb1_half(TimePoint now, Outputs& out);
  template <class Sealing>
  void offer_sealing(TimePoint now, Outputs& out);

  Side side_;
  Site site_;
  modules::Ends ends_;
  modules::Address dialled_;
  std::unique_ptr<Half> half_;  // null until the dialect is known
  std::unique_ptr<seal::Sealing> sealing_;
  seal::UsedIds used_ids_;  // at the near half, until there is `sealing_`
  // For the near half, until it exists.
  bool is_offered_ = false;
  modules::Reason unsealed_ = reasons::optimised;
  // An SMB1 NEGOTIATE that offers SMB2 too: the response decides.
  std::optional<Frame> offer_;
};

class SmbModule final : public twin::FramedModule<Dialects> {
 public:
  // `dialled`: the server's address, at the far side (Instance::make_far).
  SmbModule(Side side, const modules::Ends& ends, const Site& site, const modules::Address& dialled = {})
      : FramedModule(side, Dialects(side, ends, site, dialled)) {}
};

}  // namespace longhaul::smb
