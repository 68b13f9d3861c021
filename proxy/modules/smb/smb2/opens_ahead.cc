// SPDX-License-Identifier: Apache-2.0
// See opens_ahead.h.
#include "proxy/modules/smb/smb2/opens_ahead.h"

#include <algorithm>
#include <utility>

namespace longhaul::smb::smb2 {

OpensAhead::Ahead* OpensAhead::find(Number number) {
  const auto found = opens_.find(number);
  return found == opens_.end() ? nullptr : &found->second;
}

OpensAhead::Ahead OpensAhead::remove(Number number) {
  auto removed = opens_.extract(number);
  Ahead ahead = std::move(removed.mapped());
  if (of_file(ahead.file) == number) by_file_.erase(ahead.file);
  if (ahead.waiting) --waiting_;
  return ahead;
}

std::size_t OpensAhead::looks() const {
  return static_cast<std::size_t>(std::count_if(
      opens_.begin(), opens_.end(), [](const auto& each) { return each.second.asked.is_look(); }));
}

std::uint64_t OpensAhead::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [number, ahead] : opens_) bytes += ahead.bytes;
  return bytes;
}

void OpensAhead::opened(Number number, const Open& open) {
  Ahead& ahead = opens_.at(number);
  ahead.file = open.file;
  ahead.key = open.key;
  by_file_[open.file] = number;
}

void OpensAhead::offered(Number number, TimePoint until) {
  Ahead& ahead = opens_.at(number);
  ahead.state = State::offered;
  ahead.until = until;
}

std::optional<OpensAhead::Number> OpensAhead::of_file(const FileId& file) const {
  const auto found = by_file_.find(file);
  return found == by_file_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<OpensAhead::Number> OpensAhead::fitting(const OpeningRow::Opened& asked) const {
  for (const auto& [number, ahead] : opens_) {
    if (ahead.session != asked.session || ahead.tree != asked.tree || ahead.asked != asked.open) continue;
    const bool for_nobody = ahead.state == State::opening && !ahead.unwanted && !ahead.waiting;
    if (ahead.state == State::offered || for_nobody) return number;
  }
  return std::nullopt;
}

void OpensAhead::wait_for(Number number, const Message& create) {
  opens_.at(number).waiting = create;
  ++waiting_;
}

std::optional<Message> OpensAhead::take_waiting(Number number) {
  std::optional<Message> waiting = std::exchange(opens_.at(number).waiting, std::nullopt);
  if (waiting) --waiting_;
  return waiting;
}

std::vector<OpensAhead::Number> OpensAhead::taken_back() const {
  std::vector<Number> numbers;
  for (const auto& [number, ahead] : opens_)
    if (ahead.state == State::taken_back) numbers.push_back(number);
  return numbers;
}

std::vector<OpensAhead::Number> OpensAhead::expired(TimePoint now) const {
  std::vector<Number> numbers;
  for (const auto& [number, ahead] : opens_)
    if (ahead.state == State::offered && now >= ahead.until) numbers.push_back(number);
  return numbers;
}

std::optional<TimePoint> OpensAhead::next_expiry() const {
  std::optional<TimePoint> first;
  for (const auto& [number, ahead] : opens_)
    if (ahead.state == State::offered && (!first || ahead.until < *first)) first = ahead.until;
  return first;
}

}  // namespace longhaul::smb::smb2
