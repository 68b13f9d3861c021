// SPDX-License-Identifier: Apache-2.0
// What one half of a protocol made of frames is to its module: whole frames, messages of the twin and time
// in; outputs, in order, out. Cutting frames and gathering attached bytes is left to framed_module.h.
#pragma once
#include <chrono>
#include <optional>

#include "proxy/modules/module.h"

namespace longhaul::twin {

using link::TimePoint;

enum class Side : std::uint8_t { near, far };  // the client's, the server's

template <class Frame, class Message>
class Half {
 public:
  virtual ~Half() = default;

  // Frames as they came, head included; what is not taken must be passed on unchanged, at once, in order.
  virtual void frame_from_lan(TimePoint now, const Frame& frame) = 0;
  virtual void frame_from_stream(TimePoint now, const Frame& frame) = 0;
  // `attached` has attached_bytes(message) bytes.
  virtual void from_twin(TimePoint now, const Message& message, const Slice& attached) = 0;

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
  // what the account of all flows counts (ahead/ahead_cache.h).
  virtual std::size_t state_bytes() const { return 0; }

  virtual void on_surroundings(TimePoint now, const modules::Surroundings& surroundings) = 0;
  virtual void on_timeout(TimePoint now) = 0;  // a spurious call is harmless
  virtual std::optional<TimePoint> next_timeout() const = 0;
  virtual const modules::Counters& counters() const = 0;
};

// How long the line may be silent, beside a round trip, while the far half is believed to report what others
// change: an answer from here is no staler than one from the server by more than that. Pings are more
// frequent (link::kBusyPing).
inline constexpr modules::Duration kUnheard = std::chrono::seconds(1);
static_assert(2 * link::kBusyPing < kUnheard);
inline bool is_unheard(TimePoint now, const link::Contact& contact, modules::Duration round_trip) {
  return contact.since != TimePoint{} && now - contact.confirmed > kUnheard + round_trip;
}

}  // namespace longhaul::twin
