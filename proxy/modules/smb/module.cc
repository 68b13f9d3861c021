// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/module.h"

#include <utility>

#include "proxy/modules/smb/seal/smb1_sealing.h"
#include "proxy/modules/smb/smb1/far.h"
#include "proxy/modules/smb/smb1/near.h"
#include "proxy/modules/smb/smb2/far.h"
#include "proxy/modules/smb/smb2/near.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb {

using modules::Way;

Site::Site() : channels(std::make_shared<smb2::Channels>()) {}

Result<std::optional<Frame>> Dialects::next(FrameSplitter& splitter, Way way) const {
  if (!half_) return splitter.next();
  return splitter.next(way == Way::to_stream ? half_->bare_from_lan() : half_->bare_from_stream());
}

bool Dialects::takes(TimePoint now, const Frame& frame, Way way, Outputs& out,
                     const Surroundings& surroundings) {
  if (is_session_packet(frame.kind)) return false;
  if (!half_) make_half_for(now, frame, way, out, surroundings);
  return half_ != nullptr;
}

// [MS-SMB2] 3.3.5.3.1, 3.3.5.4: the first NEGOTIATE of SMB2 decides the dialect's family, or the response to
// one of SMB1 that offers both.
void Dialects::make_half_for(TimePoint now, const Frame& frame, Way way, Outputs& out,
                             const Surroundings& surroundings) {
  const bool near = side_ == Side::near;
  const bool from_client = (way == Way::to_stream) == near;
  if (frame.kind == FrameKind::smb1 && from_client && !offer_) {
    const auto offered = smb2::parse_multi_protocol_negotiate(frame.message());
    offer_ = frame;
    if (!offered || offered->smb2_002 || offered->smb2_any) return;
    make_smb1_half(now, out);
  } else if (frame.kind == FrameKind::smb1 && !from_client && offer_) {
    make_smb1_half(now, out);
    // The dialect's half needs the offer, which has been passed on already.
    auto put_out = out.exchange({});
    half_->on_surroundings(now, surroundings);
    if (near)
      half_->frame_from_lan(now, *offer_);
    else
      half_->frame_from_stream(now, *offer_);
    (void)out.exchange(std::move(put_out));
  } else if (frame.kind == FrameKind::smb2 && near) {
    half_ = std::make_unique<smb2::Near>(out, site_.ahead, site_.lost, site_.channels, ends_);
  } else if (frame.kind == FrameKind::smb2) {
    auto far = std::make_unique<smb2::Far>(out, site_.lost, ends_);
    if (offer_) far->begun_with_smb1();
    half_ = std::move(far);
    offer_sealing<seal::FarSealing>(now, out);
  }
  if (!half_) return;
  if (is_offered_) half_->seals();
  if (unsealed_ != reasons::optimised) half_->cannot_open(unsealed_);
  offer_.reset();
  half_->on_surroundings(now, surroundings);
}

template <class Sealing>
void Dialects::offer_sealing(TimePoint now, Outputs& out) {
  auto keys = site_.keys->of(dialled_);
  if (!keys) return;
  if (const auto why = site_.unopened->why(now, ends_)) {
    half_->cannot_open(*why);
    out.tell(seal::unsealed_for(*why));
    return;
  }
  sealing_ = std::make_unique<Sealing>(std::move(keys), *half_, site_.unopened, ends_);
  half_->seals();
  out.tell(SealOffered{});
}

std::optional<Frame> Dialects::for_half(TimePoint now, const Frame& frame, Way way, Outputs& out) {
  if (!sealing_) {
    if (side_ == Side::near && way == Way::to_stream && is_offered_) used_ids_.note(frame);
    return frame;
  }
  if (way == Way::to_lan) return sealing_->from_stream(frame);
  return sealing_->from_lan(now, frame, out);
}

// The first message may arrive before the near half exists: after an SMB1 NEGOTIATE.
bool Dialects::takes_message(const TwinMessage& message, Outputs& out) {
  if (side_ != Side::near) return false;
  if (std::holds_alternative<SealOffered>(message)) {
    is_offered_ = true;
    if (half_) half_->seals();
    return true;
  }
  if (const auto* unsealed = std::get_if<Unsealed>(&message)) {
    unsealed_ = reasons::with_code(as_text(unsealed->reason.bytes()));
    if (half_) half_->cannot_open(unsealed_);
    return true;
  }
  const auto* keys = std::get_if<SealKeys>(&message);
  if (!sealing_ && keys && keys->dialect == kDialectOfSmb1)
    sealing_ = std::make_unique<seal::NearSmb1Sealing>();
  if (!sealing_ && (keys || std::holds_alternative<LoginRefused>(message)))
    sealing_ = std::make_unique<seal::NearSealing>(std::exchange(used_ids_, {}));
  return sealing_ && sealing_->takes(message, out);
}

void Dialects::make_smb1_half(TimePoint now, Outputs& out) {
  if (side_ == Side::near) {
    half_ = std::make_unique<smb1::Near>(out, site_.ahead, site_.lost, ends_);
  } else {
    half_ = std::make_unique<smb1::Far>(out, site_.lost, ends_);
    offer_sealing<seal::FarSmb1Sealing>(now, out);
  }
}

}  // namespace longhaul::smb
