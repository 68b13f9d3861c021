// SPDX-License-Identifier: Apache-2.0
// What one dialect's half of the SMB module is to the module: whole frames, messages of the twin and time in;
// outputs, in order, out. Cutting frames, choosing the dialect and gathering attached bytes are the module's
// (module.h).
#pragma once
#include <deque>
#include <optional>
#include <utility>

#include "proxy/modules/module.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb {

using link::TimePoint;

// Where a half puts what it wants done. Only whole frames go to the stream, and only through pass_on() and
// tell(), so that the twin always finds frames where it expects them.
class Outputs {
 public:
  void to_lan(Slice bytes) {
    if (!lan_ended_) queue_.push_back(modules::ToLan{std::move(bytes)});
  }
  // A whole frame towards the twin, which meets it in frame_from_stream().
  void pass_on(Slice frame) {
    if (stream_ == Stream::open) queue_.push_back(modules::ToStream{std::move(frame)});
  }
  // A message to the twin at this position between the frames. `attached` follows as raw bytes, which are
  // reduced like any others; the message tells its length (attached_bytes()).
  void tell(const TwinMessage& message, Slice attached = {}) {
    if (stream_ != Stream::open) return;
    queue_.push_back(modules::ToTwin{encode(message)});
    if (!attached.empty()) queue_.push_back(modules::ToStream{std::move(attached)});
  }
  // Half-closes, behind all that went before; what comes afterwards is dropped.
  void end_lan() {
    if (!std::exchange(lan_ended_, true)) queue_.push_back(modules::EndLan{});
  }
  void end_stream() {
    if (stream_ != Stream::open) return;
    queue_.push_back(modules::EndStream{});
    stream_ = Stream::ended;
  }
  void abort() { queue_.push_back(modules::Abort{}); }  // a promise cannot be kept: reset both ends

  // The module's. `rest` is what is held of a frame; it follows, for the twin is not to look for a frame in
  // it. What is passed on or told afterwards is dropped.
  void step_aside_to_stream(modules::Reason reason, std::vector<Slice> rest) {
    queue_.push_back(modules::StepAside{modules::Way::to_stream, reason});
    for (Slice& bytes : rest) queue_.push_back(modules::ToStream{std::move(bytes)});
    stream_ = Stream::aside;
  }
  void step_aside_to_lan() { queue_.push_back(modules::StepAside{modules::Way::to_lan}); }

  std::optional<modules::Output> poll() {
    std::optional<modules::Output> first;
    if (queue_.empty()) return first;
    first.emplace(std::move(queue_.front()));
    queue_.pop_front();
    return first;
  }
  // Takes out what was put in, to be put in again later.
  std::deque<modules::Output> exchange(std::deque<modules::Output> queue) {
    return std::exchange(queue_, std::move(queue));
  }

 private:
  enum class Stream : std::uint8_t { open, ended, aside } stream_ = Stream::open;
  bool lan_ended_ = false;
  std::deque<modules::Output> queue_;
};

// As long may a line be silent, beside a round trip, while the far half is believed to tell of what others
// change: an answer from here is no staler than one from the server by more than that. Pings are more
// frequent (link::kBusyPing).
inline constexpr modules::Duration kUnheard = std::chrono::seconds(1);
static_assert(2 * link::kBusyPing < kUnheard);
inline bool is_unheard(TimePoint now, const link::Contact& contact,
                       const modules::Surroundings& surroundings) {
  return contact.since != TimePoint{} && !surroundings.features.smb_metadata_relaxed &&
         now - contact.confirmed > kUnheard + surroundings.round_trip;
}

// As long may a server that takes back an oplock of ours wait for the near half's word that nothing more is
// promised under it. Servers wait 30 (smbd) to 35 seconds (Windows) and give it to others then: a promised
// WRITE that came later would put old bytes over new ones. So the server's connection ends before that.
inline constexpr modules::Duration kOplockFence = std::chrono::seconds(25);

class Half {
 public:
  virtual ~Half() = default;

  // Frames as they came, head included; what is not taken must be passed on unchanged, at once, in order.
  virtual void frame_from_lan(TimePoint now, const Frame& frame) = 0;
  virtual void frame_from_stream(TimePoint now, const Frame& frame) = 0;
  // `attached` has attached_bytes(message) bytes.
  virtual void from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) = 0;

  // No more frames from there: as Module::lan_ended and stream_ended, to be answered by end_stream and
  // end_lan when every promise is kept, or by abort.
  virtual void lan_ended(TimePoint now, modules::Ending ending) = 0;
  virtual void stream_ended(TimePoint now, modules::Ending ending) = 0;

  // As Module::twin_lost().
  virtual void twin_lost() = 0;

  // One way is not understood any further, or both are to be left alone: what comes from the LAN (the stream)
  // after this passes without the half. It starts nothing new and settles what it owes; the other way's
  // frames still come. After lan_opaque() nothing may be told or passed on any more: the module has stepped
  // aside from that way.
  virtual void lan_opaque(TimePoint now) = 0;
  virtual void stream_opaque(TimePoint now) = 0;
  // Whether the next frame from there may come without a header, as raw transfers of SMB1 do.
  virtual Bare bare_from_lan() const { return Bare::unexpected; }
  virtual Bare bare_from_stream() const { return Bare::unexpected; }
  // Nothing of the way to the LAN is held or owed: the module may step aside from it.
  virtual bool quiet() const = 0;
  // Why this connection should be left alone altogether (it is signed, encrypted, of no use to us), as soon
  // as that is known; the module steps aside from both ways when quiet() holds. `optimised`: it should not.
  virtual modules::Reason leave_alone() const = 0;
  // What keeps it from doing all it could, for people.
  virtual modules::Reason reason() const { return leave_alone(); }

  // Frames of the stream that wait here for answers of the LAN.
  virtual std::size_t queued_bytes() const { return 0; }
  // What it keeps about the connection, about: opens, requests, answers that were not asked for yet. Without
  // what the account of all flows counts (ahead_cache.h).
  virtual std::size_t state_bytes() const { return 0; }

  virtual void on_surroundings(TimePoint now, const modules::Surroundings& surroundings) = 0;
  virtual void on_timeout(TimePoint now) = 0;  // a spurious call is harmless
  virtual std::optional<TimePoint> next_timeout() const = 0;
  virtual const modules::Counters& counters() const = 0;
};

}  // namespace longhaul::smb
