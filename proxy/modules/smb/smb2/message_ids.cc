// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/message_ids.h"

#include <algorithm>
#include <limits>

namespace longhaul::smb::smb2 {
namespace {

// No server reaches it, and arithmetic above it is safe.
constexpr MessageId kLastId{1ull << 62};

// The ids of a request.
Interval ids_of(MessageId first, std::uint16_t charge) { return {first.number(), first.number() + charge}; }

}  // namespace

std::uint64_t MessageIds::count(const IntervalSet& ids) {
  std::uint64_t sum = 0;
  for (const Interval& i : ids.intervals()) sum += i.size();
  return sum;
}

bool MessageIds::all_free(Interval ids) const {
  const auto& runs = free_.intervals();
  auto behind = std::upper_bound(runs.begin(), runs.end(), ids.begin,
                                 [](std::uint64_t id, const Interval& run) { return id < run.begin; });
  return behind != runs.begin() && ids.end <= std::prev(behind)->end;
}

void MessageIds::use(Interval ids) {
  free_.remove(ids);
  bank_.remove(ids);
}

MessageIds::Forwarded MessageIds::forward(MessageId client_id, std::uint16_t charge, Renumber renumber) {
  if (client_id >= kLastId) return {client_id, Refusal::none};  // the server refuses it
  const Interval ids = ids_of(client_id, charge);
  if (all_free(ids) && !bank_.overlaps(ids)) {
    use(ids);
    client_next_ = std::max(client_next_, ids.end);
    return {client_id, Refusal::none};
  }
  if (bank_.overlaps(ids) || skipped_.overlaps(ids) ||
      (ids.end <= client_next_ && sent_as_.contains(client_id))) {
    // The client uses an id twice: as at a server, this ends its connection.
    return {client_id, Refusal::impossible};
  }
  if (renumber == Renumber::forbidden) {
    // Granted, but used by us; or not granted yet.
    bool taken = ids.begin < top_ && !all_free({ids.begin, std::min(ids.end, top_)});
    return {client_id, taken ? Refusal::impossible : Refusal::wait};
  }
  auto other = find(charge, 0);
  if (!other) return {client_id, Refusal::wait};
  use(ids_of(*other, charge));
  client_next_ = std::max(client_next_, ids.end);
  sent_as_[client_id] = *other;
  client_id_[*other] = client_id;
  bank(client_id, charge);  // its own free ids now serve others
  return {*other, Refusal::none};
}

MessageId MessageIds::sent_as(MessageId client_id) const {
  auto found = sent_as_.find(client_id);
  return found == sent_as_.end() ? client_id : found->second;
}

MessageId MessageIds::client_id(MessageId id) const {
  auto found = client_id_.find(id);
  return found == client_id_.end() ? id : found->second;
}

void MessageIds::finished(MessageId id) {
  auto found = client_id_.find(id);
  if (found == client_id_.end()) return;
  sent_as_.erase(found->second);
  client_id_.erase(found);
}

void MessageIds::bank(MessageId client_id, std::uint16_t charge) {
  if (client_id >= kLastId) return;
  const Interval ids = ids_of(client_id, charge);
  client_next_ = std::max(client_next_, ids.end);
  // Only free ones: the others were used here, as an advance on them.
  for (const Interval& i : free_.intervals())
    bank_.add({std::max(i.begin, ids.begin), std::min(i.end, ids.end)});
  skipped_.add({std::max(ids.begin, top_), ids.end});
}

std::optional<MessageId> MessageIds::find_banked(std::uint16_t charge) const {
  for (const Interval& i : bank_.intervals())
    if (i.size() >= charge) return MessageId{i.begin};
  return std::nullopt;
}

std::optional<MessageId> MessageIds::find(std::uint16_t charge, std::uint64_t keep) const {
  if (auto banked = find_banked(charge)) return banked;
  // The highest run of ids that the client has not reached; those below it belong to the client.
  std::uint64_t below = 0;
  std::optional<MessageId> highest;
  std::uint64_t below_highest = 0;
  for (Interval i : free_.intervals()) {
    i.begin = std::max(i.begin, client_next_);
    if (i.begin >= i.end) continue;
    if (i.size() >= charge) {
      highest = MessageId{i.end - charge};
      below_highest = below + i.size() - charge;
    }
    below += i.size();
  }
  if (!highest || below_highest < keep) return std::nullopt;
  return highest;
}

std::optional<MessageId> MessageIds::take(std::uint16_t charge, std::uint64_t keep) {
  auto id = find(charge, keep);
  if (id) use(ids_of(*id, charge));
  return id;
}

std::uint16_t MessageIds::credits_to_ask(std::uint16_t charge) const {
  std::uint64_t free = free_ids();
  std::uint64_t lacking = free < kTargetWindow ? kTargetWindow - free : 0;
  return static_cast<std::uint16_t>(std::min<std::uint64_t>(charge + lacking, kTargetWindow + charge));
}

// The last run of free ids, which is too short for the waiting request, may be used for ECHOs a limited
// number of times.
bool MessageIds::may_use_last_run() {
  if (free_.empty()) return false;
  if (free_ids() > last_run_) {
    last_run_ = free_ids();
    tries_ = 0;
  }
  return ++tries_ <= kMostTries;
}

std::optional<MessageIds::Burn> MessageIds::burn(Waits waits, std::uint16_t most_charge) {
  if (waits == Waits::no) last_run_ = tries_ = 0;
  Interval first;
  if (!bank_.empty()) {
    first = bank_.intervals().front();
    // The client is ahead of the grants, or the window's low end lags: both end when the bank is used up.
    bool lags = first.begin + kMostLag < top_ || count(skipped_) > kMostLag / 2;
    if (waits == Waits::no && !lags) return std::nullopt;
  } else {
    // The free ids are in runs too short for the waiting request.
    const bool in_vain = waits == Waits::in_vain && (free_.intervals().size() > 1 || may_use_last_run());
    if (!in_vain && (waits == Waits::no || low() + kMostLag >= top())) return std::nullopt;
    first = free_.intervals().front();
  }
  auto charge = static_cast<std::uint16_t>(
      std::min<std::uint64_t>(first.size(), std::min(most_charge, kMostBurnCharge)));
  const MessageId id{first.begin};
  use(ids_of(id, charge));
  return Burn{id, charge};
}

std::uint16_t MessageIds::lacking(MessageId end, std::uint64_t charge) const {
  const std::uint64_t beyond = end > top() ? end - top() : 0;
  return static_cast<std::uint16_t>(std::min(std::max(charge, beyond), kTargetWindow));
}

void MessageIds::granted(std::uint16_t credits) {
  Interval added{top_, top_ + credits};
  top_ = added.end;
  free_.add(added);
  for (const Interval& i : skipped_.intervals())
    bank_.add({std::max(i.begin, added.begin), std::min(i.end, added.end)});
  skipped_.remove({0, top_});
}

bool MessageIds::in_step() const {
  return bank_.empty() && skipped_.empty() && sent_as_.empty() && low().number() >= client_next_ &&
         (free_.intervals().size() <= 1) && (free_.empty() || free_.intervals().front().end == top_);
}

}  // namespace longhaul::smb::smb2
