// SPDX-License-Identifier: Apache-2.0
// The promises of one flow, as seen by other flows of its client and by the daemon: marked on disk before the
// first one, given up when the client opens a file elsewhere, recorded as lost when the flow ends. The ledger
// has the promises; the protocol decides how a response informs the client.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "proxy/modules/promises/ledger.h"
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/promises/marks.h"
#include "proxy/modules/promises/messages.h"

namespace longhaul::promises {

class LivePromises final : public LiveLedger {
 public:
  // The file of an open; nullopt if the open has ended.
  using FileOf = std::function<std::optional<LostWrites::File>(const OpenKey&)>;
  // Calls lose() and resets the flow.
  using End = std::function<void(Cause)>;

  // `ledger`, and what the functions refer to, outlive this object.
  LivePromises(std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends, Ledger& ledger, FileOf file_of,
               End end);
  ~LivePromises() override;
  LivePromises(const LivePromises&) = delete;
  LivePromises& operator=(const LivePromises&) = delete;

  // ---- marks (marks.h)

  // `call` is called on the loop when is_marked() may have changed.
  void on_news(std::function<void()> call) { marks_.on_news(std::move(call)); }
  // Writes of this open may be promised from now on.
  void mark(const OpenKey& open, const LostWrites::File& file) { marks_.mark(open, file); }
  // No more writes of this open are promised.
  void unmark(const OpenKey& open) { marks_.unmark(open); }
  void marked_at_twin(const Marked& told) {
    told.refused ? marks_.refused_at_twin(told.open) : marks_.marked_at_twin(told.open);
  }
  // Whether the open is marked on the disks of both sides; nullopt: not known yet.
  std::optional<bool> is_marked(const OpenKey& open) const;

  // ---- progress and ends

  // The server answered a promised request, or the first of several was promised.
  void moved(link::TimePoint now) { moved_at_ = now; }
  // Outstanding promises can no longer be kept: recorded for clients that open those files again.
  void lose(Cause cause);
  // An open has ended: no response can report an error any more. `settled`: its losses were reported. `lost`:
  // promised data is lost and was recorded; the flow must be reset.
  enum class Closed : std::uint8_t { clean, settled, lost };
  Closed closed(const OpenKey& open, const LostWrites::File& file);

  bool owes() const override { return ledger_.owes(); }
  void give_up(const LostWrites::File& file, Cause cause, LostWrites::Reach reach) override;
  LostWrites::Unfinished finish(const LostWrites::File& file, LostWrites::Reach reach) override;

 private:
  bool is_in(const OpenKey& open, const LostWrites::File& file, LostWrites::Reach reach) const;
  // `cause`, unless the server has refused everything that is still owed for this open.
  LostWrites::Loss loss_of(const OpenKey& open, Cause cause) const;

  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  Ledger& ledger_;
  FileOf file_of_;
  End end_;
  OpenMarks marks_;
  link::TimePoint moved_at_{};
};

}  // namespace longhaul::promises
