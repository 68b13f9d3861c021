// SPDX-License-Identifier: Apache-2.0
// The seam for application modules: what reads one protocol and hides its round trips. One half stands on each side of
// the link; the two halves of a flow are twins and speak to each other inside the flow's stream. Without I/O: bytes,
// messages and time in; bytes, messages and a deadline out. Modules are listed in modules.h; there is none yet.
#pragma once
#include <optional>
#include <variant>

#include "codecs/slice.h"
#include "proxy/link/types.h"

namespace longhaul::modules {

// What a module wants done, in the order in which it says so.
struct ToLan { Slice bytes; };           // to this side's client or server
struct ToStream { Slice bytes; };        // on along the flow, as raw bytes
struct ToTwin { Slice message; };        // to the other half, at this position of the stream
struct StepAside {};                     // from here on this direction passes unchanged; every promise is kept
using Output = std::variant<ToLan, ToStream, ToTwin, StepAside>;

class Module {
 public:
  virtual ~Module() = default;

  virtual void from_lan(link::TimePoint now, Bytes bytes) = 0;
  virtual void from_stream(link::TimePoint now, Bytes bytes) = 0;
  virtual void from_twin(link::TimePoint now, Bytes message) = 0;
  virtual void on_timeout(link::TimePoint now) = 0;  // a spurious call is harmless

  virtual std::optional<Output> poll_output() = 0;
  virtual std::optional<link::TimePoint> next_timeout() const = 0;
};

}  // namespace longhaul::modules
