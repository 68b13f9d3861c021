// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/live_promises.h"

#include <utility>

namespace longhaul::promises {

LivePromises::LivePromises(std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends, Ledger& ledger,
                           FileOf file_of, End end)
    : lost_(std::move(lost)),
      ends_(ends),
      ledger_(ledger),
      file_of_(std::move(file_of)),
      end_(std::move(end)),
      marks_(lost_) {
  lost_->live().enter(ends_, this);
}

LivePromises::~LivePromises() {
  lose(Cause::flow_cut);
  lost_->live().leave(ends_, this);
}

std::optional<bool> LivePromises::is_marked(const OpenKey& open) const {
  const auto state = marks_.state(open);
  if (state == OpenMarks::State::refused || marks_.is_refused_at_twin(open)) return false;
  if (state == OpenMarks::State::pending || !marks_.is_marked_at_twin(open)) return std::nullopt;
  return true;
}

LostWrites::Loss LivePromises::loss_of(const OpenKey& open, Cause cause) const {
  const bool refused = ledger_.outstanding_bytes(open) == 0;
  return {.cause = refused ? Cause::refused : cause, .ranges = ledger_.outstanding_ranges(open)};
}

void LivePromises::lose(Cause cause) {
  for (const OpenKey& open : ledger_.owed())
    if (const auto file = file_of_(open)) lost_->add(*file, loss_of(open, cause));
  ledger_.cut_off();
}

LivePromises::Closed LivePromises::closed(const OpenKey& open, const LostWrites::File& file) {
  const LostWrites::Loss loss = loss_of(open, Cause::server_gone);
  const bool failed = ledger_.failed(open);
  if (ledger_.forget(open)) {
    marks_.unmark(open);
    return failed ? Closed::settled : Closed::clean;
  }
  lost_->add(file, loss);
  return Closed::lost;
}

bool LivePromises::is_in(const OpenKey& open, const LostWrites::File& file, LostWrites::Reach reach) const {
  const auto its = file_of_(open);
  return its == file || (its && reach == LostWrites::Reach::below && name_after(*its, file, file));
}

void LivePromises::give_up(const LostWrites::File& file, Cause cause, LostWrites::Reach reach) {
  for (const OpenKey& open : ledger_.owed())
    if (is_in(open, file, reach)) return end_(cause);
}

LostWrites::Unfinished LivePromises::finish(const LostWrites::File& file, LostWrites::Reach reach) {
  LostWrites::Unfinished unfinished{.moved_at = moved_at_};
  for (const OpenKey& open : ledger_.owed()) {
    if (!is_in(open, file, reach)) continue;
    ledger_.stop(open);
    unfinished.bytes += ledger_.outstanding_bytes(open);
  }
  return unfinished;
}

}  // namespace longhaul::promises
