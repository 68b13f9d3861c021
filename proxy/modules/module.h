// SPDX-License-Identifier: Apache-2.0
// The seam for application modules: what reads one protocol and hides its round trips. One half stands on
// each side of the link; the two halves of a flow are twins and speak to each other inside the flow's stream.
// Without I/O: bytes, messages, ends and time in; bytes, messages, ends and a deadline out. Modules are
// listed in modules.h; who runs them is proxy/flows/module_host.h.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "codecs/slice.h"
#include "proxy/config/features.h"
#include "proxy/flows/reason.h"
#include "proxy/link/liveness.h"
#include "proxy/link/types.h"
#include "proxy/modules/counters.h"

namespace longhaul::modules {

using link::Duration;
using link::TimePoint;

// That of IPv4 as IPv6 maps it.
using Address = std::array<std::byte, 16>;

// Between whom a flow is, the same on both sides of the link and for each connection of the two. A
// server that is named has a digest of its name instead of an address.
struct Ends {
  Address client{}, server{};
  std::uint16_t server_port = 0;
  auto operator<=>(const Ends&) const = default;
};

// A half has two ways: from its LAN into the stream, and from the stream to its LAN. What is `to_stream` here
// is `to_lan` at the twin.
enum class Way : std::uint8_t { to_stream, to_lan };

// How a connection, or the twin's side of the stream, came to its end.
enum class Ending : std::uint8_t {
  closed,  // in order: the other way goes on
  reset,   // both ways are gone: nobody reads what is sent there any more
};

// What a module wants done, in the order in which it says so.
struct ToLan {  // to this side's client or server
  Slice bytes;
};
struct ToStream {  // on along the flow, as raw bytes, which are reduced like any others
  Slice bytes;
};
struct ToTwin {  // to the other half, at this position between the raw bytes
  Slice message;
};
// The end of a way, behind all that was put out before. Nothing is put out that way afterwards; messages to
// the twin behind EndStream are dropped.
struct EndLan {};
struct EndStream {};
// From here on all that comes this way passes unchanged, its end too, and the module is not asked any more.
// What it still holds it puts out directly behind this, before its next input. `reason` says why in `longhaul
// why`.
//   to_stream: at any time. The twin is told at this position of the stream (Module::twin_stepped_aside).
//   to_lan: only after the twin has stepped aside, for its messages and what it put in between would be taken
//   for the
//     flow's bytes.
// When both ways have passed the module is destroyed; messages of the twin are then dropped.
struct StepAside {
  Way way;
  flows::Reason reason = flows::Reason::optimised;  // optimised: as planned, nothing to explain
};
// Both connections are reset, here and at the twin's side, behind all that was put out before.
struct Abort {};
using Output = std::variant<ToLan, ToStream, ToTwin, EndLan, EndStream, StepAside, Abort>;

// What a module may know of the line and the flow. Told before anything else, when the features change, and
// about every 100 ms while something is going on.
struct Surroundings {
  std::uint64_t line_bytes_per_second = 0;  // from here to the twin; 0: not measured yet
  Duration round_trip{0};                   // to the twin and back, smoothed; 0: not measured yet
  std::size_t stream_room = 0;  // what the stream takes at once, beyond all that was put out before
  config::Features features;    // in force for this flow
  link::Contact contact{};      // with the twin's side
};

// Inputs from the LAN come only while little of what was put out before waits for the stream, those from the
// stream only while little waits for the LAN: who puts out about as much as it takes in need not count. After
// each input poll_output() is called until it is empty.
class Module {
 public:
  virtual ~Module() = default;

  virtual void on_surroundings(TimePoint now, const Surroundings& surroundings) = 0;

  // At most 64 KiB at a time, cut anywhere. The slice may be kept, and parts of it put out without a copy; a
  // small part keeps the whole in memory as long as it lives.
  virtual void from_lan(TimePoint now, Slice bytes) = 0;
  virtual void from_stream(TimePoint now, Slice bytes) = 0;
  virtual void from_twin(TimePoint now, Slice message) = 0;  // at its position between from_stream()

  // Behind the last bytes of that way. `closed` is answered by EndStream (EndLan), when every promise is
  // kept; `reset`, which may also follow `closed`, by Abort, when what can still be kept is kept: after
  // lan_ended(reset) outputs to the LAN are dropped, after stream_ended(reset) those to the stream, the
  // others go on. Who does not answer a reset within a minute is aborted.
  virtual void lan_ended(TimePoint now, Ending ending) = 0;
  virtual void stream_ended(TimePoint now, Ending ending) = 0;

  // All that from_stream() brings from now on the twin has passed unseen. The answer is StepAside{to_lan}, as
  // soon as nothing of this way is held or owed; messages of the twin may still come.
  virtual void twin_stepped_aside(TimePoint now) = 0;

  // The twin was cut off, or its proxy is lost, or seems to be: what the twin said and that did not come never comes.
  // The half is destroyed next, or, if the twin is heard again, goes on.
  virtual void twin_lost() {}

  virtual void on_timeout(TimePoint now) = 0;  // a spurious call is harmless

  virtual std::optional<Output> poll_output() = 0;
  virtual std::optional<TimePoint> next_timeout() const = 0;

  // Bytes that it took in and has neither put out nor let go: parts of frames, above all.
  virtual std::size_t held_bytes() const { return 0; }
  // Beside them, whole frames of the stream that wait for what the LAN says first. Where memory is short it
  // is the stream, then, that is read no further.
  virtual std::size_t queued_bytes() const { return 0; }
  // Beside both, what it keeps about the connection: it grows with what the LAN has open or has asked, not
  // with what waits.
  virtual std::size_t state_bytes() const { return 0; }
  // There is no memory for the rest of what it holds parts of: from the LAN it steps aside as soon as it can.
  virtual void give_up_memory(TimePoint) {}

  // Of this half since its beginning.
  virtual const Counters& counters() const = 0;
  // What keeps it from doing all it could, while it runs; optimised: nothing.
  virtual flows::Reason reason() const { return flows::Reason::optimised; }
};

// A message may be of any size up to this; a small one costs its bytes and a few more.
inline constexpr std::size_t kMaxTwinMessage = 256 * 1024;

}  // namespace longhaul::modules
