// SPDX-License-Identifier: Apache-2.0
// The interface between one half of a frame-based protocol and its module: whole frames, messages of the twin
// and time are the input; outputs, in order, the result. framed_module.h splits frames and collects attached
// bytes.
#pragma once
#include <chrono>
#include <functional>
#include <optional>

#include "proxy/modules/module.h"

namespace longhaul::twin {

using link::TimePoint;

enum class Side : std::uint8_t { near, far };  // at the client, at the server

// `Told`: what the half uses of modules::Surroundings: either that type, or one constructed from it, with the
// module's features parsed.
template <class Frame, class Message, class Told = modules::Surroundings>
class Half {
 public:
  using Surroundings = Told;
  virtual ~Half() = default;

  // Frames as they arrived, including the head; a frame that is not used must be passed on unchanged, at
  // once, in order.
  virtual void frame_from_lan(TimePoint now, const Frame& frame) = 0;
  virtual void frame_from_stream(TimePoint now, const Frame& frame) = 0;
  // `attached` has attached_bytes(message) bytes.
  virtual void from_twin(TimePoint now, const Message& message, const Slice& attached) = 0;

  // No more frames will arrive from that side: as Module::lan_ended and stream_ended. The half calls
  // end_stream and end_lan when every promise is kept, or abort.
  virtual void lan_ended(TimePoint now, modules::Ending ending) = 0;
  virtual void stream_ended(TimePoint now, modules::Ending ending) = 0;

  // As Module::twin_lost().
  virtual void twin_lost() = 0;

  // One direction can no longer be parsed, or both must pass unchanged: later bytes from the LAN (the stream)
  // bypass the half. It starts nothing new and completes its obligations; frames of the other direction still
  // arrive. After lan_opaque() no message or frame may be sent in that direction: the module has stepped
  // aside from it.
  virtual void lan_opaque(TimePoint now) = 0;
  virtual void stream_opaque(TimePoint now) = 0;
  // Returns true if nothing in the direction to the LAN is held or owed: the module may step aside from it.
  virtual bool quiet() const = 0;
  // The reason why this connection should pass unchanged altogether (it is signed, encrypted, or of no use to
  // us), as soon as that is known; the module steps aside from both directions when quiet() holds.
  // `optimised`: no reason.
  virtual modules::Reason leave_alone() const = 0;
  // The reason why the half does less than it could, for display.
  virtual modules::Reason reason() const { return leave_alone(); }

  // Memory is exhausted: whether the module may step aside from the LAN now. The near half is called
  // repeatedly while it returns `later`; it must not begin anything that would delay it further.
  enum class Leave : std::uint8_t {
    now,
    later,  // it owes the client a response
    never,  // only a half can report something that the client must be told: the flow is aborted
  };
  virtual Leave gives_up() { return Leave::now; }

  // Frames from the stream that wait here for responses from the LAN.
  virtual std::size_t queued_bytes() const { return 0; }
  // Approximate memory of its state about the connection: opens, requests, responses fetched in advance.
  // Excludes what the account of all flows counts (ahead/ahead_cache.h).
  virtual std::size_t state_bytes() const { return 0; }

  // As Module::awaited() and arrived().
  virtual std::uint64_t awaited() const { return 0; }
  virtual void arrived(std::uint64_t /*outputs*/) {}

  // As Module::set_wake().
  virtual void set_wake(const std::function<void()>&) {}
  virtual void on_surroundings(TimePoint now, const Told& surroundings) = 0;
  virtual void on_timeout(TimePoint now) = 0;  // a spurious call is harmless
  virtual std::optional<TimePoint> next_timeout() const = 0;
  virtual const modules::Counters& counters() const = 0;
};

// How long the line may be silent, in addition to a round trip, while the far half is assumed to report
// changes by others: a response from the cache is at most that much older than one from the server. Pings are
// more frequent (link::kBusyPing).
inline constexpr modules::Duration kUnheard = std::chrono::seconds(1);
static_assert(2 * link::kBusyPing < kUnheard);
inline bool is_unheard(TimePoint now, const link::Contact& contact, modules::Duration round_trip) {
  return contact.since != TimePoint{} && now - contact.confirmed > kUnheard + round_trip;
}

}  // namespace longhaul::twin
