// SPDX-License-Identifier: Apache-2.0
// Losses that are being reported to one connection's client. An error that was sent may never be read: losses
// stay on record until the client sends something more. The protocol decides how an open is answered, and
// which of the client's messages were sent behind that answer.
#pragma once
#include <utility>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/twin/open_key.h"

namespace longhaul::promises {

class Telling {
 public:
  // `lost` outlives this object.
  explicit Telling(LostWrites& lost) : lost_(lost) {}

  bool has(const LostWrites::File& file, LostWrites::Use use) const { return lost_.has(file, use); }
  void end_live(const LostWrites::File& file) { lost_.end_live(file); }
  // The answer that reports it is sent now. `answer`: its number, for went_on_behind().
  void told(LostWrites::File file, LostWrites::Use use, twin::MessageNumber answer = 0) {
    told_.push_back({std::move(file), use, answer});
  }
  // Before an open: true if it must be answered with the protocol's error for lost writes, which is sent now.
  bool tells(const LostWrites::File& file, LostWrites::Use use, twin::MessageNumber answer = 0) {
    if (use == LostWrites::Use::replaces || !has(file, use)) return false;
    told(file, use, answer);
    return true;
  }
  // The open that replaces the content has succeeded.
  void replaced(const LostWrites::File& file) { lost_.forget(file); }
  // The connection is reset now, where no answer can report it.
  void told_by_reset(const LostWrites::File& file) { lost_.told_by_reset(file); }
  // The client has continued, or ended in order: it has had all earlier answers. Not for what it sent before
  // those and what waited here: it may have left meanwhile.
  void client_goes_on() {
    for (const Sent& sent : std::exchange(told_, {})) (void)lost_.take(sent.file, sent.use);
  }
  // For a half that does not see when its answers reach the client: it has continued behind this one.
  void went_on_behind(twin::MessageNumber answer) {
    std::erase_if(told_, [&](const Sent& sent) {
      if (sent.answer == answer) (void)lost_.take(sent.file, sent.use);
      return sent.answer == answer;
    });
  }

 private:
  struct Sent {
    LostWrites::File file;
    LostWrites::Use use;
    twin::MessageNumber answer;
  };
  LostWrites& lost_;
  std::vector<Sent> told_;
};

// At the near half: errors for lost writes that the far half, or the server, has sent, and that the client
// has not continued behind yet.
class ToldByOthers {
 public:
  void passes(twin::MessageNumber answer) {
    if (answers_.size() < kMost) answers_.push_back(answer);
  }
  // The far half must hear of each (LossRead).
  std::vector<twin::MessageNumber> client_goes_on() { return std::exchange(answers_, {}); }

 private:
  static constexpr std::size_t kMost = 64;  // beyond that they are reported again
  std::vector<twin::MessageNumber> answers_;
};

}  // namespace longhaul::promises
