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
  closed,  // normal end: the other direction continues
  reset,   // both directions are lost: sent data is no longer read
};

// The outputs of a module, in order.
struct ToLan {  // to this side's client or server
  Slice bytes;
};
struct ToStream {  // raw bytes of the flow, deduplicated and compressed like any others
  Slice bytes;
  // Only compressed, with bytes of the same flow as context: no other flow's bytes ever refer to these.
  bool is_isolated = false;
  // Nothing but the content of messages. So an outer module can isolate everything else, such as requests'
  // headers.
  bool is_content = false;
};
struct ToTwin {  // to the other half, at this position in the raw bytes
  Slice message;
  bool is_isolated = false;  // if an outer module makes raw bytes of it: as in ToStream
};
// The end of a direction, after all earlier output. Nothing may follow in that direction; messages to
// the twin after EndStream are dropped.
struct EndLan {};
struct EndStream {};
// From here on, everything in this direction passes unchanged, including its end, without the module.
// Directly after this, before its next input, the module outputs the bytes that it still holds. `longhaul
// why` shows `reason`.
//   to_stream: at any time. The twin is notified at this position of the stream (Module::twin_stepped_aside).
//   to_lan: only after the twin has stepped aside: otherwise its messages and the bytes that it generated
//     would be taken for bytes of the flow.
// When both directions pass, the module is destroyed; messages of the twin are then dropped.
struct StepAside {
  Way way;
  Reason reason{};  // optimised: as planned, nothing to explain
};
// Only for the far half, once: closes the connection to the server, and connects the same server again. Later
// output to the LAN is sent on the new connection; remaining bytes of the old connection, and its end, are
// dropped. If the server cannot be reached, lan_ended(reset) follows.
struct Redial {};
// Resets both connections, here and at the twin's side, after all earlier output.
struct Abort {};
using Output = std::variant<ToLan, ToStream, ToTwin, EndLan, EndStream, StepAside, Redial, Abort>;

// The line and the flow as reported to a module: first of all, when the features change, and about every 100
// ms during activity.
struct Surroundings {
  std::uint64_t line_bytes_per_second = 0;  // from here to the twin; 0: not measured yet
  Duration round_trip{0};                   // to the twin and back, smoothed; 0: not measured yet
  std::size_t stream_room = 0;              // bytes that the stream accepts now, after all earlier output
  config::Features features;                // in force for this flow
  link::Contact contact{};                  // with the twin's side
  link::Token twin_session{};               // the session with the twin's side; changes after a loss
};

// Whether the output queue of each direction is short, so that a module may add more.
struct Room {
  bool lan = false, stream = false;
};

// Input from the LAN stops while too much output waits for the stream, and input from the stream while too
// much waits for the LAN. So a module that outputs about as much as it receives needs no limits of its own.
// After each input, poll_output() is called until it is empty.
class Module {
 public:
  virtual ~Module() = default;

  // Called first. The module may call the function on the event loop, while this object lives, but not from
  // inside the functions of this class; it leads to on_surroundings().
  virtual void set_wake(std::function<void()>) {}

  virtual void on_surroundings(TimePoint now, const Surroundings& surroundings) = 0;

  // At most 64 KiB at a time, split anywhere. The slice may be kept, and parts of it output without a copy; a
  // small part keeps the whole slice in memory.
  virtual void from_lan(TimePoint now, Slice bytes) = 0;
  // The same for bytes that the server already has, so they must not be output. Called at the beginning of a
  // connection, and only for the halves of Instance::make_plaintext_reader().
  virtual void from_lan_seen_late(TimePoint, Slice /*bytes*/) {}
  // Called after the last of those, and before from_lan(): all later bytes pass this module before they reach
  // the server.
  virtual void seen_late_is_over(TimePoint) {}
  virtual void from_stream(TimePoint now, Slice bytes) = 0;
  virtual void from_twin(TimePoint now, Slice message) = 0;  // at its position between from_stream()

  // After the last bytes of that direction. After `closed` the module outputs EndStream (EndLan) as soon as
  // every promise is kept. After `reset`, which may also follow `closed`, it outputs Abort as soon as every
  // promise is kept that still can be: after lan_ended(reset) output to the LAN is dropped, after
  // stream_ended(reset) output to the stream; the other output continues. A half that outputs no Abort within
  // a minute after a reset is aborted.
  virtual void lan_ended(TimePoint now, Ending ending) = 0;
  virtual void stream_ended(TimePoint now, Ending ending) = 0;

  // From now on from_stream() passes bytes that bypassed the twin. The module must output StepAside{to_lan}
  // as soon as it holds no bytes of this direction and must add none; messages of the twin may still arrive.
  virtual void twin_stepped_aside(TimePoint now) = 0;

  // The twin was cut off, or its proxy is or seems lost: messages of the twin that have not arrived may never
  // arrive. Afterwards the half is destroyed, or continues if the twin responds again.
  virtual void twin_lost() {}

  virtual void on_timeout(TimePoint now) = 0;  // a spurious call is harmless
  // Called whenever the host runs and has room, for a module that can produce output without input.
  virtual void on_room(TimePoint, const Room&) {}

  virtual std::optional<Output> poll_output() = 0;
  virtual std::optional<TimePoint> next_timeout() const = 0;

  // For outputs to the LAN whose arrival the module needs to know: awaited() is the number of such outputs so
  // far. arrived() reports, before from_lan() and lan_ended(), how many of them the other end's host has
  // acknowledged.
  virtual std::uint64_t awaited() const { return 0; }
  virtual void arrived(std::uint64_t /*outputs*/) {}

  // Input that the module holds, mostly incomplete frames.
  virtual std::size_t held_bytes() const { return 0; }
  // In addition, complete frames from the stream that wait for the LAN. If memory is short, the stream is not
  // read while there are any.
  virtual std::size_t queued_bytes() const { return 0; }
  // In addition, its state about the connection, which grows with open files and pending requests.
  virtual std::size_t state_bytes() const { return 0; }
  // There is no memory to complete its frames: the module must step aside from the LAN as soon as it can.
  virtual void give_up_memory(TimePoint) {}

  // Whether nothing of the flow may be stored in a dictionary from now on.
  virtual bool is_private() const { return false; }

  // The counters of this half since its start.
  virtual const Counters& counters() const = 0;
  // Why it cannot optimise fully at present; `optimised` if it can.
  virtual Reason reason() const { return {}; }
  // Further information about the connection for display: a short line in the protocol's own terms, or empty.
  virtual std::string_view detail() const { return {}; }
};

// The largest message; a small one costs a few bytes more than its size.
inline constexpr std::size_t kMaxTwinMessage = 256 * 1024;

}  // namespace longhaul::modules
