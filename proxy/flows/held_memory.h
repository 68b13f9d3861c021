// SPDX-License-Identifier: Apache-2.0
// What one flow's module holds of the memory of all modules (proxy/modules/memory.h). If that is used up:
// whether the flow is still read, from the LAN and from the stream, and when it has to go on without its
// module.
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
    std::size_t queued = 0;  // frames that wait for the LAN's answers
    std::size_t state = 0;   // the module's state about the connection
  };

  // `memory`: that of all flows.
  explicit HeldMemory(std::shared_ptr<modules::Memory> memory) : memory_(std::move(memory)) {}
  ~HeldMemory() { memory_->remove(total(counted_)); }
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  // This is what the flow holds now.
  void count(const Parts& parts);

  // All flows together hold as much as they may.
  bool is_short() const { return memory_->is_short(); }
  // And this one holds more than a few reads: for the stream, or for the LAN's answers.
  bool lan_is_held_back() const;
  bool stream_is_held_back() const;
  // True: a message of the twin grows to this size meanwhile, and is not yet complete.
  bool refuses(std::size_t bytes) const;
  // True: a piece may be read from the stream, and is. Now and then even if that is held back: it may contain
  // the client's answer that the server waits for.
  bool take_piece(TimePoint now);

  // After each run of the flow.
  struct Run {
    bool reads_lan = false, reads_stream = false;  // the module, until it leaves a direction or aborts
    bool progress = false;                         // no incomplete frame, or its output is on its way
  };
  // True: the module should leave the LAN's bytes.
  bool must_leave_after(TimePoint now, const Run& run);
  // When the flow has to run again to see whether there is room.
  std::optional<TimePoint> look_again_at() const { return look_again_at_; }

 private:
  static std::size_t total(const Parts& parts) { return parts.bytes + parts.queued + parts.state; }

  std::shared_ptr<modules::Memory> memory_;
  Parts counted_;  // in memory_
  std::optional<TimePoint> held_back_since_, look_again_at_;
  TimePoint fed_at_{};  // from the stream, last
};

}  // namespace longhaul::flows
