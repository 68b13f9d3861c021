// SPDX-License-Identifier: Apache-2.0
// The interface of application modules, which parse one protocol and hide its round trips. There is one half
// on each side of the link; the two halves of a flow are twins and exchange messages inside the flow's
// stream. Without I/O: bytes, messages, ends and time in; bytes, messages, ends and a deadline out.
// descriptor.h describes a module, proxy/flows/module_host.h runs them.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "codecs/slice.h"
#include "proxy/config/features.h"
#include "proxy/link/frames.h"
#include "proxy/link/liveness.h"
#include "proxy/link/types.h"
#include "proxy/modules/counters.h"
#include "proxy/modules/reason.h"

namespace longhaul::modules {

using link::Duration;
using link::TimePoint;

// IPv4 addresses in IPv4-mapped form.
using Address = std::array<std::byte, 16>;

// The client and server of a flow, the same on both sides of the link and for all their connections. A server
// given by name has a digest of the name instead of an address.
struct Ends {
  Address client{}, server{};
  std::uint16_t server_port = 0;
  auto operator<=>(const Ends&) const = default;
};

// The directions of a half: from its LAN into the stream, and from the stream to its LAN. `to_stream` here
// is `to_lan` at the twin.
enum class Way : std::uint8_t { to_stream, to_lan };

// How a connection, or the twin's side of the stream, ended.
enum class Ending : std::uint8_t {
  closed,  // orderly: the other direction continues
  reset,   // both directions are lost: data sent there is no longer read
};

// The outputs of a module, in order.
struct ToLan {  // to this side's client or server
  Slice bytes;
};
struct ToStream {  // raw bytes of the flow, deduplicated and compressed like any others
  Slice bytes;
};
struct ToTwin {  // to the other half, at this position in the raw bytes
  Slice message;
};
// The end of a direction, after all earlier output. Nothing may follow in that direction; messages to
// the twin after EndStream are dropped.
struct EndLan {};
struct EndStream {};
// From here on, everything in this direction passes unchanged, including its end, and the module does not see
// it. The module outputs what it still holds directly after this, before its next input. `longhaul why` shows
// `reason`.
//   to_stream: at any time. The twin is told at this position of the stream (Module::twin_stepped_aside).
//   to_lan: only after the twin has stepped aside, for its messages and what it put in between would be taken
//   for the
//     flow's bytes.
// When both ways have passed the module is destroyed; messages of the twin are then dropped.
struct StepAside {
  Way way;
  Reason reason{};  // optimised: as planned, nothing to explain
};
// Far half only, once: the connection to the server is closed, and the same server is connected again. What is output to
// the LAN after this goes to the new connection, and nothing that the old one had still to say is told, nor its end.
// Where the server is not reached, lan_ended(reset) follows.
struct Redial {};
// Both connections are reset, here and at the twin's side, after all earlier output.
struct Abort {};
using Output = std::variant<ToLan, ToStream, ToTwin, EndLan, EndStream, StepAside, Redial, Abort>;

// What a module is told about the line and the flow: first of all, when the features change, and about every
// 100 ms during activity.
struct Surroundings {
  std::uint64_t line_bytes_per_second = 0;  // from here to the twin; 0: not measured yet
  Duration round_trip{0};                   // to the twin and back, smoothed; 0: not measured yet
  std::size_t stream_room = 0;              // what the stream accepts now, beyond all earlier output
  config::Features features;                // in force for this flow
  link::Contact contact{};                  // with the twin's side
  link::Token twin_session{};               // the session with it: another one after that was lost
};

// Whether little output waits in each direction, so that a module may add more.
struct Room {
  bool lan = false, stream = false;
};

// Input from the LAN stops while too much output waits for the stream, input from the stream while too much
// waits for the LAN: a module with about as much output as input need not count. After each input,
// poll_output() is called until it is empty.
class Module {
 public:
  virtual ~Module() = default;

  // First of all. The call leads to on_surroundings(); it is made on the loop, while this object lives, and
  // never from within one of these functions.
  virtual void set_wake(std::function<void()>) {}

  virtual void on_surroundings(TimePoint now, const Surroundings& surroundings) = 0;

  // At most 64 KiB at a time, split anywhere. The slice may be kept, and parts of it output without a copy; a
  // small part keeps the whole slice in memory.
  virtual void from_lan(TimePoint now, Slice bytes) = 0;
  // The same, of what the server has already, so that it is seen and not output: at the beginning of a connection, and only
  // for those that Instance::make_plaintext_reader() makes.
  virtual void from_lan_seen_late(TimePoint, Slice /*bytes*/) {}
  // After the last of those, and before from_lan(): everything else comes here before it comes to the server.
  virtual void seen_late_is_over(TimePoint) {}
  virtual void from_stream(TimePoint now, Slice bytes) = 0;
  virtual void from_twin(TimePoint now, Slice message) = 0;  // at its position between from_stream()

  // After the last bytes of that direction. `closed` is answered by EndStream (EndLan), when every promise is
  // kept; `reset`, which may also follow `closed`, by Abort, when what can still be kept is kept: after
  // lan_ended(reset) outputs to the LAN are dropped, after stream_ended(reset) those to the stream, the
  // others continue. A half that does not answer a reset within a minute is aborted.
  virtual void lan_ended(TimePoint now, Ending ending) = 0;
  virtual void stream_ended(TimePoint now, Ending ending) = 0;

  // From now on from_stream() brings bytes that bypassed the twin. The answer is StepAside{to_lan}, as soon
  // as nothing in this direction is held or owed; messages of the twin may still come.
  virtual void twin_stepped_aside(TimePoint now) = 0;

  // The twin was cut off, or its proxy is or seems lost: messages of the twin that have not arrived may never
  // arrive. The half is destroyed next, or continues if the twin is heard again.
  virtual void twin_lost() {}

  virtual void on_timeout(TimePoint now) = 0;  // a spurious call is harmless
  // Whenever the host runs and has room: for a module that could say more than others have asked for.
  virtual void on_room(TimePoint, const Room&) {}

  virtual std::optional<Output> poll_output() = 0;
  virtual std::optional<TimePoint> next_timeout() const = 0;

  // Outputs to the LAN of which it wants to know that the other end's host has them: how many there were, and,
  // before from_lan() and lan_ended(), how many of them have arrived by its acknowledgements.
  virtual std::uint64_t awaited() const { return 0; }
  virtual void arrived(std::uint64_t /*outputs*/) {}

  // Input that it holds, mostly incomplete frames.
  virtual std::size_t held_bytes() const { return 0; }
  // In addition, complete frames from the stream that wait for the LAN. If memory is short, the stream is
  // then no longer read.
  virtual std::size_t queued_bytes() const { return 0; }
  // In addition, its state about the connection, which grows with open files and pending requests.
  virtual std::size_t state_bytes() const { return 0; }
  // There is no memory for the rest of its incomplete frames: it steps aside from the LAN as soon as it can.
  virtual void give_up_memory(TimePoint) {}

  // Nothing of the flow may go into a dictionary from now on.
  virtual bool is_private() const { return false; }

  // Of this half since its start.
  virtual const Counters& counters() const = 0;
  // The reason why it cannot optimise fully, while it runs; optimised: none.
  virtual Reason reason() const { return {}; }
  // What else is known of the connection, for people: a short line in the protocol's own terms, or nothing.
  virtual std::string_view detail() const { return {}; }
};

// The largest message; a small one costs a few bytes more than its size.
inline constexpr std::size_t kMaxTwinMessage = 256 * 1024;

}  // namespace longhaul::modules
