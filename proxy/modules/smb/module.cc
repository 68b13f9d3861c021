// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/module.h"

#include <cstring>

#include "proxy/modules/smb/smb1/far.h"
#include "proxy/modules/smb/smb1/near.h"
#include "proxy/modules/smb/smb2/far.h"
#include "proxy/modules/smb/smb2/near.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb {

using modules::Ending;
using modules::Reason;
using modules::Way;

Site::Site() : channels(std::make_shared<smb2::Channels>()) {}

SmbModule::SmbModule(Side side, const modules::Ends& ends, const Site& site)
    : side_(side),
      site_(site),
      ends_(ends),
      lan_(framing_of_port(ends.server_port)),
      stream_(framing_of_port(ends.server_port)) {}

// ---- bytes

void SmbModule::from_lan(TimePoint now, Slice bytes) {
  // A server that has ended answers nothing more, and nobody may do so in its place.
  bool unanswered = side_ == Side::near && stream_ended_;
  if (lan_state_ != State::frames || unanswered) return out_.pass_on(std::move(bytes));
  lan_.push(std::move(bytes));
  take_frames(now, Way::to_stream);
  review(now);
}

void SmbModule::from_stream(TimePoint now, Slice bytes) {
  if (stream_state_ != State::frames) return out_.to_lan(std::move(bytes));
  if (attaching_) {
    bytes = take_attached(std::move(bytes));
    if (attached_missing_ == 0) {
      TwinMessage message = std::move(*attaching_);
      attaching_.reset();
      half_->from_twin(now, message, std::exchange(attached_, {}));
    }
  }
  if (!bytes.empty()) {
    stream_.push(std::move(bytes));
    take_frames(now, Way::to_lan);
  }
  review(now);
}

// Copied into one piece: the host's slices may be small parts of something large.
Slice SmbModule::take_attached(Slice bytes) {
  std::size_t taken = std::min(bytes.size(), attached_missing_);
  std::memcpy(attached_room_, bytes.bytes().data(), taken);
  attached_room_ += taken;
  attached_missing_ -= taken;
  return bytes.from(taken);
}

void SmbModule::from_twin(TimePoint now, Slice bytes) {
  if (stream_state_ == State::aside) return;
  auto message = decode(bytes.bytes());
  // Between frames only, and only from a twin that has chosen a dialect as we have: anything else is no twin
  // of ours.
  bool in_place = !attaching_ && (stream_state_ != State::frames || stream_.held_bytes() == 0);
  if (!message || !half_ || !in_place) return out_.abort();
  std::uint32_t attached = attached_bytes(*message);
  if (attached == 0) {
    half_->from_twin(now, *message, {});
    return review(now);
  }
  if (stream_state_ != State::frames) return out_.abort();
  attached_ = Slice::unfilled(attached, attached_room_);
  attached_missing_ = attached;
  attaching_ = std::move(*message);
}

// ---- frames

void SmbModule::take_frames(TimePoint now, Way way) {
  bool up = way == Way::to_stream;
  while ((up ? lan_state_ : stream_state_) == State::frames) {
    const Bare bare = !half_ ? Bare::unexpected : up ? half_->bare_from_lan() : half_->bare_from_stream();
    auto next = (up ? lan_ : stream_).next(bare);
    if (!next) {
      if (up) return lan_opaque(now, reasons::smb_not_understood);
      // The twin has cut the same bytes: where it found an end, it has stepped aside.
      return out_.abort();
    }
    if (!*next) return;
    frame(now, **next, way);
  }
}

void SmbModule::frame(TimePoint now, const Frame& frame, Way way) {
  bool up = way == Way::to_stream;
  if (!is_session_packet(frame.kind) && (half_ || decide(now, frame, way)))
    return up ? half_->frame_from_lan(now, frame) : half_->frame_from_stream(now, frame);
  if (up)
    out_.pass_on(frame.bytes);
  else
    out_.to_lan(frame.bytes);
}

// [MS-SMB2] 3.3.5.3.1, 3.3.5.4: the dialect's family is known by the first NEGOTIATE of SMB2, or by the
// answer to one of SMB1 that offers both. True: there is a half for the frame.
bool SmbModule::decide(TimePoint now, const Frame& frame, Way way) {
  bool near = side_ == Side::near;
  bool from_client = (way == Way::to_stream) == near;
  if (frame.kind == FrameKind::smb1 && from_client && !offer_) {
    auto offered = smb2::parse_multi_protocol_negotiate(frame.message());
    offer_ = frame;
    if (!offered || offered->smb2_002 || offered->smb2_any) return false;
    make_smb1_half();
  } else if (frame.kind == FrameKind::smb1 && !from_client && offer_) {
    make_smb1_half();
    // It wants to know what was offered; that has been passed on already.
    auto put_out = out_.exchange({});
    half_->on_surroundings(now, surroundings_);
    if (near)
      half_->frame_from_lan(now, *offer_);
    else
      half_->frame_from_stream(now, *offer_);
    (void)out_.exchange(std::move(put_out));
  } else if (frame.kind == FrameKind::smb2 && near) {
    half_ = std::make_unique<smb2::Near>(out_, site_.ahead, site_.lost, site_.channels, ends_);
  } else if (frame.kind == FrameKind::smb2) {
    auto far = std::make_unique<smb2::Far>(out_, site_.lost, ends_);
    if (offer_) far->begun_with_smb1();
    half_ = std::move(far);
  }
  if (!half_) return false;
  offer_.reset();
  half_->on_surroundings(now, surroundings_);
  return true;
}

void SmbModule::make_smb1_half() {
  if (side_ == Side::near)
    half_ = std::make_unique<smb1::Near>(out_, site_.ahead, site_.lost, ends_);
  else
    half_ = std::make_unique<smb1::Far>(out_, site_.lost, ends_);
}

// ---- ways that are not frames any more

void SmbModule::lan_opaque(TimePoint now, Reason reason) {
  if (lan_state_ != State::frames) return;
  if (half_) half_->lan_opaque(now);
  lan_state_ = State::aside;
  reason_ = reason;
  out_.step_aside_to_stream(reason, lan_.take_rest());
}

void SmbModule::stream_opaque(TimePoint now) {
  if (stream_state_ != State::frames) return;
  if (half_) half_->stream_opaque(now);
  stream_state_ = State::bytes;
  for (Slice& rest : stream_.take_rest()) out_.to_lan(std::move(rest));
}

void SmbModule::twin_stepped_aside(TimePoint now) {
  if (attaching_) return out_.abort();
  stream_opaque(now);
  review(now);
}

std::size_t SmbModule::held_bytes() const {
  return lan_.held_bytes() + stream_.held_bytes() + (offer_ ? offer_->bytes.size() : 0) +
         (attaching_ ? attached_.size() - attached_missing_ : 0);
}

void SmbModule::give_up_memory(TimePoint now) {
  gives_up_ = true;
  review(now);
}

// Whether there is anything left to do here.
void SmbModule::review(TimePoint now) {
  // The near half owes the server nothing; the far half must not take answers to its own requests for the
  // client's.
  if (gives_up_ && lan_state_ == State::frames && !lan_ended_ &&
      (side_ == Side::near || !half_ || half_->quiet()))
    lan_opaque(now, reasons::memory_limit);
  if (half_ && lan_state_ == State::frames && !lan_ended_)
    if (Reason why = half_->leave_alone(); why != reasons::optimised) lan_opaque(now, why);
  if (!half_ && stream_state_ == State::bytes && lan_state_ == State::frames && !lan_ended_)
    lan_opaque(now, reasons::smb_not_understood);
  if (stream_state_ == State::bytes && !stream_ended_ && (!half_ || half_->quiet())) {
    stream_state_ = State::aside;
    out_.step_aside_to_lan();
  }
}

// ---- ends

void SmbModule::lan_ended(TimePoint now, Ending ending) {
  if (lan_state_ == State::aside) return;
  for (Slice& rest : lan_.take_rest()) out_.pass_on(std::move(rest));
  lan_ended_ = true;
  if (half_) {
    half_->lan_ended(now, ending);
  } else if (ending == Ending::reset) {
    out_.abort();
  } else {
    out_.end_stream();
  }
  review(now);
}

void SmbModule::stream_ended(TimePoint now, Ending ending) {
  if (stream_state_ == State::aside) return;
  if (attaching_) return out_.abort();
  for (Slice& rest : stream_.take_rest()) out_.to_lan(std::move(rest));
  stream_ended_ = true;
  if (half_) {
    half_->stream_ended(now, ending);
  } else if (ending == Ending::reset) {
    out_.abort();
  } else {
    out_.end_lan();
  }
  if (side_ == Side::near && lan_state_ == State::frames)
    for (Slice& rest : lan_.take_rest()) out_.pass_on(std::move(rest));
  review(now);
}

// ---- surroundings, time, counters

void SmbModule::on_surroundings(TimePoint now, const modules::Surroundings& surroundings) {
  surroundings_ = surroundings;
  if (half_) half_->on_surroundings(now, surroundings);
}

void SmbModule::on_timeout(TimePoint now) {
  if (half_) half_->on_timeout(now);
  review(now);
}

std::optional<TimePoint> SmbModule::next_timeout() const {
  return half_ ? half_->next_timeout() : std::nullopt;
}

const modules::Counters& SmbModule::counters() const {
  shown_ = half_ ? half_->counters() : modules::Counters{};
  shown_.steps_aside = lan_state_ == State::aside ? 1 : 0;
  return shown_;
}

Reason SmbModule::reason() const {
  if (reason_ != reasons::optimised || !half_) return reason_;
  return half_->reason();
}

}  // namespace longhaul::smb
