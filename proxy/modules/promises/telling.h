// SPDX-License-Identifier: Apache-2.0
// Losses that one connection's client is being told of. An error that was sent may never be read: what was
// lost stays on record until the client says something more. How an open is answered is left to
// the protocol.
#pragma once
#include <utility>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"

namespace longhaul::promises {

class Telling {
 public:
  // `lost` outlives this object.
  explicit Telling(LostWrites& lost) : lost_(lost) {}

  bool has(const LostWrites::File& file, LostWrites::Use use) const { return lost_.has(file, use); }
  void end_live(const LostWrites::File& file) { lost_.end_live(file); }
  // The answer that says so goes out now.
  void told(LostWrites::File file, LostWrites::Use use) { told_.emplace_back(std::move(file), use); }
  // The open that replaces the content has succeeded.
  void replaced(const LostWrites::File& file) { lost_.forget(file); }
  // The client has gone on, or ended in order: it has had all answers before.
  void client_goes_on() {
    for (const auto& [file, use] : std::exchange(told_, {})) (void)lost_.take(file, use);
  }

 private:
  LostWrites& lost_;
  std::vector<std::pair<LostWrites::File, LostWrites::Use>> told_;
};

}  // namespace longhaul::promises
