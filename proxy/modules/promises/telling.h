// SPDX-License-Identifier: Apache-2.0
// Losses that are being reported to one connection's client. An error that was sent may never be read: losses
// stay on record until the client sends something more. The protocol decides how an open is answered.
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
  // The answer that reports it is sent now.
  void told(LostWrites::File file, LostWrites::Use use) { told_.emplace_back(std::move(file), use); }
  // Before an open: true if it must be answered with the protocol's error for lost writes, which is sent now.
  bool tells(const LostWrites::File& file, LostWrites::Use use) {
    if (use == LostWrites::Use::replaces || !has(file, use)) return false;
    told(file, use);
    return true;
  }
  // The open that replaces the content has succeeded.
  void replaced(const LostWrites::File& file) { lost_.forget(file); }
  // The client has continued, or ended in order: it has had all earlier answers.
  void client_goes_on() {
    for (const auto& [file, use] : std::exchange(told_, {})) (void)lost_.take(file, use);
  }

 private:
  LostWrites& lost_;
  std::vector<std::pair<LostWrites::File, LostWrites::Use>> told_;
};

}  // namespace longhaul::promises
