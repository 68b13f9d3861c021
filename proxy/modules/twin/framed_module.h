// SPDX-License-Identifier: Apache-2.0
// A module for a protocol of frames: splits both directions into frames, passes them to a half, collects the
// raw bytes of the twin's messages, and steps aside if nothing can be parsed or improved. The protocol
// defines the frames, and for which half they are:
//
//   struct Protocol {
//     using Frame = ...;     // has `bytes`, a Slice with its head
//     using Splitter = ...;  // push(), take_rest() and held_bytes(), as smb/frames.h has them
//     using Message = ...;   // a variant (codec.h)
//     using Half = ...;      // twin::Half<Frame, Message, ...>
//     static constexpr const modules::ReasonText& kNotUnderstood = ...;
//
//     Splitter splitter() const;
//     Result<std::optional<Frame>> next(Splitter& splitter, modules::Way way) const;
//     // Whether the half takes this frame; may create the half. Other frames pass unchanged.
//     bool takes(TimePoint now, const Frame& frame, modules::Way way, Outputs<Message>& out,
//                const Half::Surroundings& surroundings);
//     Half* half() const;    // null if it was not created yet
//     std::size_t held_bytes() const;
//
//     // All or none of these: if the LAN's bytes differ from those of the halves, as with encryption.
//     // for_half() returns nullopt if the frame is dropped and the flow has been aborted.
//     std::optional<Frame> for_half(TimePoint now, const Frame& frame, modules::Way way,
//                                   Outputs<Message>& out);
//     bool takes_message(const Message& message, Outputs<Message>& out);  // the half does not receive it
//     bool changes_bytes() const;      // whether for_lan() is called
//     std::optional<std::vector<Slice>> for_lan(Slice bytes);  // nullopt: the flow must be aborted
//     bool must_stay() const;          // stepping aside would send bytes that the receiver cannot read
//     std::size_t state_bytes() const;
//     modules::Reason reason() const;  // `optimised`: the half's
//     std::string_view detail() const;
//   };
#pragma once
#include <deque>
#include <optional>
#include <utility>

#include "proxy/modules/module.h"
#include "proxy/modules/twin/attachment.h"
#include "proxy/modules/twin/codec.h"
#include "proxy/modules/twin/half.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::twin {

template <class Protocol>
class FramedModule : public modules::Module {
 public:
  using Frame = typename Protocol::Frame;
  using Message = typename Protocol::Message;
  using Surroundings = typename Protocol::Half::Surroundings;

  FramedModule(Side side, Protocol protocol)
      : side_(side),
        protocol_(std::move(protocol)),
        lan_(protocol_.splitter()),
        stream_(protocol_.splitter()) {}

  // ---- bytes

  void from_lan(TimePoint now, Slice bytes) override {
    // A server whose connection has ended sends no more responses, and nothing may respond in its place.
    const bool is_unanswered = side_ == Side::near && stream_ended_;
    if (is_unanswered && must_stay()) return;
    if (lan_state_ != State::frames || is_unanswered) return out_.pass_on(std::move(bytes));
    lan_.push(std::move(bytes));
    take_frames(now, modules::Way::to_stream);
    review(now);
  }

  void from_stream(TimePoint now, Slice bytes) override {
    if (stream_state_ != State::frames) return out_.to_lan(std::move(bytes));
    if (attachment_.is_pending())
      if (auto whole = attachment_.take(bytes)) half()->from_twin(now, whole->message, whole->bytes);
    if (!bytes.empty()) {
      stream_.push(std::move(bytes));
      take_frames(now, modules::Way::to_lan);
    }
    review(now);
  }

  void from_twin(TimePoint now, Slice bytes) override {
    if (stream_state_ == State::aside) return;
    auto message = decode<Message>(bytes.bytes());
    if constexpr (kHasLayer)
      if (message && protocol_.takes_message(*message, out_)) return review(now);
    // Only between frames, and only from a twin that has a half as well: otherwise the twin is another
    // program.
    const bool is_in_place =
        !attachment_.is_pending() && (stream_state_ != State::frames || stream_.held_bytes() == 0);
    if (!message || !half() || !is_in_place) return out_.abort();
    if (const std::uint32_t attached = attached_bytes(*message); attached != 0) {
      if (stream_state_ != State::frames) return out_.abort();
      return attachment_.begin(std::move(*message), attached);
    }
    half()->from_twin(now, *message, {});
    review(now);
  }

  // ---- ends

  void lan_ended(TimePoint now, modules::Ending ending) override {
    if (lan_state_ == State::aside) return;
    for (Slice& rest : lan_.take_rest())
      if (!must_stay()) out_.pass_on(std::move(rest));
    lan_ended_ = true;
    if (half())
      half()->lan_ended(now, ending);
    else if (ending == modules::Ending::reset)
      out_.abort();
    else
      out_.end_stream();
    review(now);
  }

  void stream_ended(TimePoint now, modules::Ending ending) override {
    if (stream_state_ == State::aside) return;
    if (attachment_.is_pending()) return out_.abort();
    for (Slice& rest : stream_.take_rest()) out_.to_lan(std::move(rest));
    stream_ended_ = true;
    if (half())
      half()->stream_ended(now, ending);
    else if (ending == modules::Ending::reset)
      out_.abort();
    else
      out_.end_lan();
    if (side_ == Side::near && lan_state_ == State::frames && !must_stay())
      for (Slice& rest : lan_.take_rest()) out_.pass_on(std::move(rest));
    review(now);
  }

  void twin_stepped_aside(TimePoint now) override {
    if (attachment_.is_pending()) return out_.abort();
    stream_opaque(now);
    review(now);
  }

  void twin_lost() override {
    if (half()) half()->twin_lost();
  }

  // ---- surroundings, time, memory, counters

  void set_wake(std::function<void()> wake) override { wake_ = std::move(wake); }
  void on_surroundings(TimePoint now, const modules::Surroundings& surroundings) override {
    surroundings_ = Surroundings(surroundings);
    if (half()) half()->on_surroundings(now, surroundings_);
  }
  void on_timeout(TimePoint now) override {
    if (half()) half()->on_timeout(now);
    review(now);
  }
  std::optional<TimePoint> next_timeout() const override {
    return half() ? half()->next_timeout() : std::nullopt;
  }
  std::optional<modules::Output> poll_output() override {
    while (for_lan_.empty()) {
      auto next = out_.poll();
      if constexpr (kHasLayer) {
        auto* const lan = next ? std::get_if<modules::ToLan>(&*next) : nullptr;
        if (lan && protocol_.changes_bytes()) {
          auto sealed = protocol_.for_lan(std::move(lan->bytes));
          if (!sealed) return modules::Output{modules::Abort{}};
          for (Slice& bytes : *sealed) for_lan_.push_back(modules::ToLan{std::move(bytes)});
          continue;
        }
      }
      return next;
    }
    std::optional<modules::Output> first(std::move(for_lan_.front()));
    for_lan_.pop_front();
    return first;
  }

  std::uint64_t awaited() const override { return half() ? half()->awaited() : 0; }
  void arrived(std::uint64_t outputs) override {
    if (half()) half()->arrived(outputs);
  }

  std::size_t held_bytes() const override {
    return lan_.held_bytes() + stream_.held_bytes() + protocol_.held_bytes() + attachment_.held_bytes();
  }
  std::size_t queued_bytes() const override { return half() ? half()->queued_bytes() : 0; }
  std::size_t state_bytes() const override {
    std::size_t bytes = half() ? half()->state_bytes() : 0;
    if constexpr (kHasLayer) bytes += protocol_.state_bytes();
    return bytes;
  }
  void give_up_memory(TimePoint now) override {
    gives_up_ = true;
    review(now);
  }

  const modules::Counters& counters() const override {
    shown_ = half() ? half()->counters() : modules::Counters{};
    shown_.steps_aside = lan_state_ == State::aside ? 1 : 0;
    return shown_;
  }
  modules::Reason reason() const override {
    if constexpr (kHasLayer)
      if (const auto why = protocol_.reason(); why != modules::reasons::optimised) return why;
    return reason_ != modules::reasons::optimised || !half() ? reason_ : half()->reason();
  }
  std::string_view detail() const override {
    if constexpr (kHasLayer) return protocol_.detail();
    return {};
  }

 private:
  // Of one direction: from the LAN to the stream, or from the stream to the LAN.
  enum class State : std::uint8_t {
    frames,  // split, and given to the half
    bytes,   // no more frames, or none of interest: pass unchanged
    aside,   // the host carries the bytes
  };

  auto* half() const { return protocol_.half(); }

  static constexpr bool kHasLayer = requires(const Protocol& protocol) { protocol.must_stay(); };
  bool must_stay() const {
    if constexpr (kHasLayer) return protocol_.must_stay();
    return false;
  }

  void take_frames(TimePoint now, modules::Way way) {
    const bool up = way == modules::Way::to_stream;
    while ((up ? lan_state_ : stream_state_) == State::frames) {
      auto next = protocol_.next(up ? lan_ : stream_, way);
      if (!next) {
        if (up) return lan_opaque(now, Protocol::kNotUnderstood);
        // The twin has split the same bytes, so it has stepped aside at the same position.
        return out_.abort();
      }
      if (!*next) return;
      take(now, **next, way);
    }
  }

  void take(TimePoint now, const Frame& frame, modules::Way way) {
    const bool up = way == modules::Way::to_stream;
    const bool was_made = half();
    const bool is_taken = protocol_.takes(now, frame, way, out_, surroundings_);
    if (half() && !was_made) half()->set_wake(wake_);
    if (is_taken) {
      const auto give = [&](const Frame& shown) {
        up ? half()->frame_from_lan(now, shown) : half()->frame_from_stream(now, shown);
      };
      if constexpr (kHasLayer) {
        if (const auto shown = protocol_.for_half(now, frame, way, out_)) give(*shown);
      } else {
        give(frame);
      }
      return;
    }
    if (up)
      out_.pass_on(frame.bytes);
    else
      out_.to_lan(frame.bytes);
  }

  void lan_opaque(TimePoint now, modules::Reason reason) {
    if (lan_state_ != State::frames) return;
    if (must_stay()) return out_.abort();
    if (half()) half()->lan_opaque(now);
    lan_state_ = State::aside;
    reason_ = reason;
    out_.step_aside_to_stream(reason, lan_.take_rest());
  }

  void stream_opaque(TimePoint now) {
    if (stream_state_ != State::frames) return;
    if (must_stay()) return out_.abort();
    if (half()) half()->stream_opaque(now);
    stream_state_ = State::bytes;
    for (Slice& rest : stream_.take_rest()) out_.to_lan(std::move(rest));
  }

  // Checks whether this module is still needed.
  void review(TimePoint now) {
    if (must_stay()) return;
    if (gives_up_ && takes_from_lan() && may_give_up()) lan_opaque(now, modules::reasons::memory_limit);
    if (half() && takes_from_lan())
      if (const modules::Reason why = half()->leave_alone(); why != modules::reasons::optimised)
        lan_opaque(now, why);
    if (!half() && stream_state_ == State::bytes && takes_from_lan())
      lan_opaque(now, Protocol::kNotUnderstood);
    if (stream_state_ == State::bytes && !stream_ended_ && (!half() || half()->quiet())) {
      stream_state_ = State::aside;
      out_.step_aside_to_lan();
    }
  }
  // The near half may owe its client a response; the far half must not pass responses to its own requests on
  // to the client.
  bool may_give_up() {
    using Leave = typename Protocol::Half::Leave;
    if (!half()) return true;
    if (side_ == Side::far) return half()->quiet();
    const Leave leave = half()->gives_up();
    if (leave == Leave::never) out_.abort();
    return leave == Leave::now;
  }
  bool takes_from_lan() const { return lan_state_ == State::frames && !lan_ended_; }

  Side side_;
  Outputs<Message> out_;  // the half refers to it
  Protocol protocol_;
  std::function<void()> wake_;
  Surroundings surroundings_;
  typename Protocol::Splitter lan_, stream_;
  Attachment<Message> attachment_;
  State lan_state_ = State::frames, stream_state_ = State::frames;
  bool lan_ended_ = false, stream_ended_ = false;
  bool gives_up_ = false;  // there is not enough memory to continue
  modules::Reason reason_ = modules::reasons::optimised;
  std::deque<modules::Output> for_lan_;
  mutable modules::Counters shown_;
};

}  // namespace longhaul::twin
