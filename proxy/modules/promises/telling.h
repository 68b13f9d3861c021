// SPDX-License-Identifier: Apache-2.0
// Losses that are being reported to one connection's client. A client may never read an error that was sent:
// losses stay on record until its bytes have arrived at the client's host and the client has sent something
// more. The latter alone proves nothing: clients have several requests in flight. The protocol decides how an
// open is answered, and which of the client's messages were sent after that response.
#pragma once
#include <algorithm>
#include <cstdint>
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
  void end_live(const LostWrites::File& file) { lost_.live().end(file); }
  // The response that reports the loss is sent now. `answer`: its number, for went_on_behind().
  void told(LostWrites::File file, LostWrites::Use use, twin::MessageNumber answer = {}) {
    const Sent sent{std::move(file), use, answer, ++awaited_};
    const auto same = std::ranges::find_if(
        told_, [&](const Sent& each) { return each.use == use && each.file.is_exactly(sent.file); });
    if (same != told_.end()) told_.erase(same);
    if (told_.size() >= kMostTold) told_.erase(told_.begin());
    told_.push_back(sent);
  }
  // To be called before an open. Returns true if it must be answered with the protocol's error for lost
  // writes, which the caller sends now.
  bool tells(const LostWrites::File& file, LostWrites::Use use, twin::MessageNumber answer = {}) {
    if (use == LostWrites::Use::replaces || !has(file, use)) return false;
    told(file, use, answer);
    return true;
  }
  // The open that replaces the content has succeeded.
  void replaced(const LostWrites::File& file) { lost_.forget(file); }
  // The connection is reset now, where no response can report the loss.
  void told_by_reset(const LostWrites::File& file) { lost_.told_by_reset(file); }
  // The same before an open. Returns true if the connection must be reset.
  bool tells_by_reset(const LostWrites::File& file, LostWrites::Use use) {
    if (use == LostWrites::Use::replaces || !has(file, use)) return false;
    told_by_reset(file);
    return true;
  }
  // At a near half: an error for lost writes that the far half, or the server, has sent is passed on now.
  void passes(twin::MessageNumber answer) {
    if (passed_.size() < kMostPassed) passed_.push_back({answer, ++awaited_});
  }
  // How many of all these were sent so far, and how many of them have arrived at the client's host.
  std::uint64_t awaited() const { return awaited_; }
  void arrived(std::uint64_t answers) { arrived_ = std::max(arrived_, answers); }
  // The client has continued, or ended in order: it has read what has arrived. To be called when its data
  // arrives, not when held data is processed: then the client may have gone meanwhile. Returns responses of
  // passes() to be reported to the far half (LossRead).
  std::vector<twin::MessageNumber> client_goes_on() {
    std::erase_if(told_, [&](const Sent& sent) {
      if (sent.number > arrived_) return false;
      (void)lost_.take(sent.file, sent.use);
      return true;
    });
    std::vector<twin::MessageNumber> read;
    std::erase_if(passed_, [&](const Passed& passed) {
      if (passed.number > arrived_) return false;
      read.push_back(passed.answer);
      return true;
    });
    return read;
  }
  // For a half that does not know when its responses reach the client: the client has continued after this
  // one.
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
    std::uint64_t number;
  };
  struct Passed {
    twin::MessageNumber answer;
    std::uint64_t number;
  };
  // Losses beyond these limits are reported again: otherwise a client that reads nothing could make a flow
  // remember any number.
  static constexpr std::size_t kMostTold = 64, kMostPassed = 64;
  LostWrites& lost_;
  std::vector<Sent> told_;
  std::vector<Passed> passed_;
  std::uint64_t awaited_ = 0, arrived_ = 0;
};

}  // namespace longhaul::promises
