// SPDX-License-Identifier: Apache-2.0
// The share of one flow's module in the memory of all modules (proxy/modules/memory.h). When that memory is
// used up, decides whether the flow is still read, from the LAN and from the stream, and when it must
// continue without its module.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>

#include "proxy/link/types.h"
#include "proxy/modules/memory.h"

namespace longhaul::flows {

class HeldMemory {
 public:
  using TimePoint = link::TimePoint;
  struct Parts {
    std::size_t bytes = 0;   // incomplete frames, and output that waits for the stream or the LAN
    std::size_t queued = 0;  // frames that wait for responses from the LAN
    std::size_t state = 0;   // the module's state about the connection
  };

  // `memory` is shared by all flows.
  explicit HeldMemory(std::shared_ptr<modules::Memory> memory) : memory_(std::move(memory)) {}
  ~HeldMemory() { memory_->remove(total(counted_)); }
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  // Sets what the flow holds now.
  void count(const Parts& parts);

  // Whether all flows together have reached the limit.
  bool is_short() const { return memory_->is_short(); }
  // Whether memory is short and this flow holds more than a few reads: for the stream, or for responses from
  // the LAN.
  bool lan_is_held_back() const;
  bool stream_is_held_back() const;
  // Whether an incomplete message of the twin that has grown to this size must be refused.
  bool refuses(std::size_t bytes) const;
  // Whether a piece may be read from the stream; if true, the caller reads it. Occasionally true even if the
  // stream is held back: the piece may contain the client's response that the server waits for.
  bool take_piece(TimePoint now);

  // After each run of the flow.
  struct Run {
    bool reads_lan = false, reads_stream = false;  // by the module, until it leaves a direction or aborts
    bool progress = false;                         // no incomplete frame, or output is in transit
  };
  // Returns true if the module should leave the LAN's bytes.
  bool must_leave_after(TimePoint now, const Run& run);
  // When the flow must run again to check for free memory.
  std::optional<TimePoint> look_again_at() const { return look_again_at_; }

 private:
  static std::size_t total(const Parts& parts) { return parts.bytes + parts.queued + parts.state; }

  std::shared_ptr<modules::Memory> memory_;
  Parts counted_;  // in memory_
  std::optional<TimePoint> held_back_since_, look_again_at_;
  TimePoint fed_at_{};  // last read from the stream
};

}  // namespace longhaul::flows
