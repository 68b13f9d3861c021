// SPDX-License-Identifier: Apache-2.0
// See ledger.h: promised writes, their results, and clients that must still be informed.
#include "proxy/modules/promises/ledger.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace longhaul::promises {
void Ledger::set_line_rate(double bytes_per_second) {
  constexpr double kSeconds = 2;
  if (!std::isfinite(bytes_per_second) || bytes_per_second <= 0) return;
  const double bytes = bytes_per_second * kSeconds;
  bound_bytes_ = static_cast<std::uint64_t>(
      std::clamp(bytes, static_cast<double>(kLeastBoundBytes), static_cast<double>(kMostBoundBytes)));
}

std::uint64_t Ledger::charge(const Range& range) { return std::max(range.length, kLeastChargeBytes); }

bool Ledger::room_for(const Range& range) const {
  return outstanding_bytes_ + charge(range) <= bound_bytes_;
}

void Ledger::answer(Entry& entry, OpenState& open) {
  entry.answered = true;
  outstanding_bytes_ += charge(entry.range);
  open.outstanding_bytes += charge(entry.range);
  ++open.outstanding;
  ++audit_.made;
  ++audit_.outstanding;
}

Ledger::Verdict Ledger::promise(const Open& open, Message message, Range range, Conditions conditions) {
  if (entries_.contains(message)) return Verdict::refused;
  OpenState& state = opens_[open];
  if (state.failed || state.stopped) return Verdict::refused;
  Entry& entry = entries_.emplace(message, Entry{.open = open, .range = range}).first->second;
  state.messages.insert(message);
  // A small write never overtakes one that waits for room: the client receives its responses in the order of
  // its requests.
  drop_settled();
  if (conditions == Conditions::open_question) {
    entry.early = Entry::Early::open_question;
  } else if (held_.empty() && room_for(range)) {
    answer(entry, state);
    return Verdict::now;
  }
  ++state.held;
  ++audit_.delayed;
  held_.push_back(message);
  return Verdict::held;
}

void Ledger::decide(Message message, Answer answer) {
  const auto found = entries_.find(message);
  if (found == entries_.end() || found->second.early != Entry::Early::open_question) return;
  found->second.early = answer == Answer::yes ? Entry::Early::yes : Entry::Early::no;
}

// Writes of stopped opens stay in the ledger, not in the queue: resume() is for later writes.
void Ledger::drop_settled() {
  for (; !held_.empty(); held_.pop_front()) {
    const auto found = entries_.find(held_.front());
    if (found == entries_.end() || found->second.answered) continue;
    const OpenState& open = opens_[found->second.open];
    if (!open.failed && !open.stopped && found->second.early != Entry::Early::no) return;
  }
}

std::optional<Ledger::Message> Ledger::poll_answerable() {
  drop_settled();
  if (held_.empty()) return std::nullopt;
  const Message message = held_.front();
  Entry& entry = entries_.at(message);
  if (entry.early == Entry::Early::open_question || !room_for(entry.range)) return std::nullopt;
  held_.pop_front();
  OpenState& open = opens_[entry.open];
  --open.held;
  answer(entry, open);
  return message;
}

std::optional<Ledger::Settled> Ledger::kept(Message message, Outcome outcome, std::uint32_t written_bytes) {
  const auto found = entries_.find(message);
  if (found == entries_.end()) return std::nullopt;
  const Entry entry = found->second;
  entries_.erase(found);
  OpenState& open = opens_[entry.open];
  open.messages.erase(message);
  if (!entry.answered) {
    --open.held;
    if (outcome == Outcome::error) open.failed = true;  // this response itself informs the client
    return Settled{.open = entry.open, .range = entry.range};
  }
  outstanding_bytes_ -= charge(entry.range);
  open.outstanding_bytes -= charge(entry.range);
  --open.outstanding;
  --audit_.outstanding;
  if (outcome == Outcome::success && written_bytes >= entry.range.length) {
    ++audit_.kept;
  } else {
    ++audit_.failed;
    ++audit_.unreported;
    ++open.failed_unreported;
    open.lost = open.failed = true;
  }
  return Settled{.open = entry.open, .range = entry.range, .answered = true};
}

void Ledger::stop(const Open& open) { opens_[open].stopped = true; }

void Ledger::resume(const Open& open) { opens_[open].stopped = false; }

bool Ledger::reports_loss(const Open& open) {
  const auto found = opens_.find(open);
  if (found == opens_.end() || !found->second.lost) return false;
  const std::uint32_t reported = std::exchange(found->second.failed_unreported, 0);
  audit_.reported += reported;
  audit_.unreported -= reported;
  return true;
}

bool Ledger::lost(const Open& open) const {
  const auto found = opens_.find(open);
  return found != opens_.end() && found->second.lost;
}

bool Ledger::unreported(const Open& open) const {
  const auto found = opens_.find(open);
  return found != opens_.end() && found->second.failed_unreported != 0;
}

std::vector<Interval> Ledger::outstanding_ranges(const Open& open) const {
  std::vector<Interval> ranges;
  for (const Message message : messages(open)) {
    const Entry& entry = entries_.at(message);
    if (entry.answered) ranges.push_back({entry.range.offset, entry.range.offset + entry.range.length});
  }
  return ranges;
}

bool Ledger::failed(const Open& open) const {
  const auto found = opens_.find(open);
  return found != opens_.end() && found->second.failed;
}

std::vector<Ledger::Open> Ledger::owed() const {
  std::vector<Open> opens;
  for (const auto& [open, state] : opens_)
    if (state.outstanding != 0 || state.failed_unreported != 0) opens.push_back(open);
  return opens;
}

std::uint64_t Ledger::outstanding_bytes(const Open& open) const {
  const auto found = opens_.find(open);
  return found == opens_.end() ? 0 : found->second.outstanding_bytes;
}

std::size_t Ledger::waiting(const Open& open) const {
  const auto found = opens_.find(open);
  return found == opens_.end() ? 0 : std::size_t{found->second.outstanding} + found->second.held;
}

std::vector<Ledger::Message> Ledger::messages(const Open& open) const {
  const auto found = opens_.find(open);
  if (found == opens_.end()) return {};
  return {found->second.messages.begin(), found->second.messages.end()};
}

bool Ledger::forget(const Open& open) {
  const auto found = opens_.find(open);
  if (found == opens_.end()) return true;
  OpenState& state = found->second;
  const bool clean = state.outstanding == 0 && state.failed_unreported == 0;
  for (const Message message : state.messages) entries_.erase(message);
  audit_.broken_off += state.outstanding;
  audit_.outstanding -= state.outstanding;
  outstanding_bytes_ -= state.outstanding_bytes;
  audit_.cut_off += state.failed_unreported;
  audit_.unreported -= state.failed_unreported;
  opens_.erase(found);
  return clean;
}

void Ledger::cut_off() {
  audit_.broken_off += audit_.outstanding;
  audit_.outstanding = 0;
  audit_.cut_off += audit_.unreported;
  audit_.unreported = 0;
  entries_.clear();
  held_.clear();
  opens_.clear();
  outstanding_bytes_ = 0;
}

}  // namespace longhaul::promises
