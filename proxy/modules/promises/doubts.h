// SPDX-License-Identifier: Apache-2.0
// Records, at the far half, what it cannot know: which promises of its near half may never arrive, and which
// failures the near half may not have reported yet. If the near proxy fails, those files count as lost; until
// then they are marked on disk (marks.h). The protocol determines which opens may be written behind, and
// their files.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/promises/marks.h"
#include "proxy/modules/promises/messages.h"
#include "proxy/modules/promises/telling.h"

namespace longhaul::promises {

class Doubts final : private OpenNames {
 public:
  Doubts(std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends);
  ~Doubts() override;
  Doubts(const Doubts&) = delete;
  Doubts& operator=(const Doubts&) = delete;

  // What the near half is allowed now, and may have done since: promises at all, and promises under caching
  // that the client requested itself.
  struct Allowed {
    bool early = false, cached = false;
  };
  void allowed(Allowed now);
  void near_is(const Remembers& near) { near_ = near; }
  // Whether the near half may promise WRITEs of an open that may be written behind. `on_behalf`: under the
  // far half's own oplock. Not while its client has a flow here without a guard, on which it could continue
  // after a loss.
  bool may_promise(bool on_behalf) const {
    return may_have_promised(on_behalf) && !lost_->live().has_unguarded(ends_);
  }
  bool may_have_promised(bool on_behalf) const { return allowed_.early && (on_behalf || allowed_.cached); }

  // ---- marks

  // `call` is called on the loop when poll_marks() may have new results.
  void on_news(std::function<void()> call) { marks_.on_news(std::move(call)); }
  void mark(const OpenKey& open, const LostWrites::File& file) { marks_.mark(open, file, near_.near); }
  void unmark(const OpenKey& open) { marks_.unmark(open); }
  // Opens to be reported to the near half (Marked), each once.
  std::vector<OpenMarks::News> poll_marks() { return marks_.poll(); }

  // ---- opens that end

  // The open ended with a failed promise: the near half may not have reported it to the client yet, so its
  // mark stays.
  void closed_failed(const OpenKey& open, LostWrites::File file);
  // The near half has reported all failures, and nothing is outstanding.
  void settled(const OpenKey& open);

  // ---- the client

  // The near half knows when a response has reached the client, and when the client continues after it.
  void loss_read(const LossRead& read) { telling_.went_on_behind(read.message); }
  // The client ended in order: the near half has reported all failures to it.
  void client_ended() { failed_.clear(); }
  // Whether there may be losses to report to this client.
  bool any() const { return lost_->any(ends_); }
  // To be called before an open. Returns true if the open must be answered with the protocol's error for lost
  // writes, which the caller sends now. A near daemon that still runs, or has read its predecessor's marks,
  // has better information.
  bool tells(const LostWrites::File& file, LostWrites::Use use, twin::MessageNumber answer);

  // The same where no response is possible: if true, the flow must be aborted now.
  bool tells_by_reset(const LostWrites::File& file, LostWrites::Use use);
  // The same before a request that may be an open of any file.
  bool tells_all_by_reset();

  // The near half sends nothing more: `files`, and those of closed_failed(), are lost. Cause::flow_cut adds
  // nothing to files that have a record.
  void lose(Cause cause, std::span<const LostWrites::File> files);

 private:
  static constexpr std::size_t kMostFailed = 64;
  struct Failed {
    OpenKey open;
    LostWrites::File file;
  };

  // OpenNames
  void moved(const LostWrites::File& from, const LostWrites::File& to) override;
  void drop_what_near_knows(const LostWrites::File& file);

  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  Telling telling_;
  OpenMarks marks_;
  Allowed allowed_;
  Remembers near_;  // the near daemon
  std::deque<Failed> failed_;
};

}  // namespace longhaul::promises
