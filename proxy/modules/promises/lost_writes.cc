// SPDX-License-Identifier: Apache-2.0
// See lost_writes.h.
#include "proxy/modules/promises/lost_writes.h"

#include <algorithm>
#include <utility>

#include "codecs/work.h"
#include "proxy/modules/promises/marks.h"

namespace longhaul::promises {
namespace {

// Looked up, logged, and stored.
constexpr std::uint64_t kWorkPerLoss = 10'000;

// Joined if they touch; too many become one that spans them all.
void bound(std::vector<Interval>& ranges) {
  IntervalSet set;
  for (const Interval& range : ranges) set.add(range);
  ranges = set.intervals();
  if (ranges.size() <= LostWrites::kMostRanges) return;
  ranges = {Interval{ranges.front().begin, ranges.back().end}};
}

}  // namespace

std::optional<LostWrites::File> name_after(const LostWrites::File& file, const LostWrites::File& from,
                                           const LostWrites::File& to) {
  if (file == from) return to;
  if (LostWrites::any_port(file.ends) != LostWrites::any_port(from.ends) || file.share != from.share ||
      !file.path.starts_with(from.path) || file.path.size() <= from.path.size() ||
      file.path[from.path.size()] != u'\\')
    return std::nullopt;
  LostWrites::File moved = to;
  moved.path.append(file.path, from.path.size());
  return moved;
}

std::size_t bytes_of_name(const LostWrites::File& file) {
  return (file.share.size() + file.path.size()) * sizeof(char16_t);
}

LostWrites::LostWrites(std::uint64_t number, OwnerOf owner_of)
    : number_(number), owner_of_(std::move(owner_of)), marks_(std::make_unique<Marks>(*this)) {}

LostWrites::~LostWrites() = default;

void LostWrites::add(const File& file, Loss loss) {
  count_work(kWorkPerLoss);
  bound(loss.ranges);
  if (loss.cause != Cause::refused) {
    auto& counters = loss.is_suspected() ? counters_.suspected : counters_.lost;
    ++counters[static_cast<std::size_t>(loss.cause)];
    if (journal_) journal_->lost(file, loss);
  }
  insert({.file = file, .loss = std::move(loss)});
  changed();
}

void LostWrites::refused(const File& file, Interval range, std::uint32_t status) {
  ++counters_.lost[static_cast<std::size_t>(Cause::refused)];
  const Loss loss{.cause = Cause::refused, .status = status, .ranges = {range}};
  if (journal_) journal_->lost(file, loss);
  add(file, loss);
}

void LostWrites::told_late(const File& file, Told how) {
  ++counters_.reported[static_cast<std::size_t>(how)];
  if (!journal_) return;
  Loss loss{.cause = Cause::refused};  // of a file that was emptied since, or was forgotten for want of room
  if (const auto of = clients_.find(file.ends.client); of != clients_.end())
    if (const auto found = find(of->second.records, file); found != of->second.records.end())
      loss = found->loss;
  journal_->reported(file, loss, how);
}

bool LostWrites::take(const File& file, Use use) {
  if (use == Use::attributes || use == Use::replaces) return false;
  const auto of = clients_.find(file.ends.client);
  if (of == clients_.end()) return false;
  const auto found = find(of->second.records, file);
  if (found == of->second.records.end()) return false;
  if (use == Use::reads && std::exchange(found->reader_told, true)) return false;
  ++counters_.reported[static_cast<std::size_t>(Told::next_open)];
  if (journal_) journal_->reported(file, found->loss, Told::next_open);
  if (use != Use::reads) remove(of, found);
  changed();
  return true;
}

bool LostWrites::has(const File& file, Use use) const {
  const auto of = clients_.find(file.ends.client);
  if (of == clients_.end() || use == Use::attributes) return false;
  const auto found = find(of->second.records, file);
  return found != of->second.records.end() && (use != Use::reads || !found->reader_told);
}

bool LostWrites::has_record(const File& file) const {
  const auto of = clients_.find(file.ends.client);
  return of != clients_.end() && find(of->second.records, file) != of->second.records.end();
}

void LostWrites::forget(const File& file) {
  const auto of = clients_.find(file.ends.client);
  if (of == clients_.end()) return;
  const auto found = find(of->second.records, file);
  if (found == of->second.records.end()) return;
  remove(of, found);
  changed();
}

void LostWrites::told_by_reset(const File& file) {
  if (!has_record(file)) return;
  told_late(file, Told::reset);
  forget(file);
}

bool LostWrites::told_by_reset(const Ends& ends) {
  std::vector<File> files;
  const auto of = clients_.find(ends.client);
  if (of == clients_.end()) return false;
  for (const Record& each : of->second.records)
    if (any_port(each.file.ends) == any_port(ends)) files.push_back(each.file);
  for (const File& file : files) told_by_reset(file);
  return !files.empty();
}

void LostWrites::moved(const File& file, const File& to) {
  if (file == to) return;
  forget(to);
  marks_->moved(file, to);
  const auto of = clients_.find(file.ends.client);
  if (of == clients_.end()) return;
  Owner& owner = of->second.owner->second;
  bool any = false;
  for (Record& record : of->second.records) {
    const auto moved_to = name_after(record.file, file, to);
    if (!moved_to) continue;
    const std::size_t before = bytes_of_name(record.file), after = bytes_of_name(*moved_to);
    name_bytes_ += after - before, owner.name_bytes += after - before;
    record.file = *moved_to;
    any = true;
  }
  if (!any) return;
  make_room();
  changed();
}

void LostWrites::known_to(std::uint64_t near, const File& file) {
  const auto of = clients_.find(file.ends.client);
  if (of == clients_.end() || near == 0) return;
  const auto found = find(of->second.records, file);
  if (found != of->second.records.end() && found->loss.near == near) {
    remove(of, found);
    changed();
  }
}

void LostWrites::leave(const Ends& ends, LiveLedger* ledger) {
  const auto [first, last] = live_.equal_range(any_port(ends));
  for (auto each = first; each != last; ++each) {
    if (each->second != ledger) continue;
    live_.erase(each);
    return;
  }
}

void LostWrites::end_live(const File& file, Cause cause, const LiveLedger* but) {
  const auto [first, last] = live_.equal_range(any_port(file.ends));
  bool given_up = false;
  for (auto each = first; each != last; ++each) {
    if (each->second == but || !each->second->owes()) continue;
    each->second->give_up(file, cause);
    given_up |= !each->second->owes();
  }
  if (given_up && on_given_up_) on_given_up_();
}

LostWrites::Unfinished LostWrites::finish_others(const File& file, const LiveLedger& own) {
  Unfinished all;
  const auto [first, last] = live_.equal_range(any_port(file.ends));
  for (auto each = first; each != last; ++each) {
    if (each->second == &own || !each->second->owes()) continue;
    const Unfinished one = each->second->finish(file);
    if (one.bytes == 0) continue;
    all.bytes += one.bytes;
    all.moved_at = std::max(all.moved_at, one.moved_at);
  }
  return all;
}

bool LostWrites::any(const Ends& ends) const {
  const auto [first, last] = live_.equal_range(any_port(ends));
  if (std::any_of(first, last, [](const auto& each) { return each.second->owes(); })) return true;
  const auto of = clients_.find(ends.client);
  return of != clients_.end() && std::ranges::any_of(of->second.records, [&](const Record& each) {
           return any_port(each.file.ends) == any_port(ends);
         });
}

bool LostWrites::may_lose(const Ends& ends) const {
  return live_.contains(any_port(ends)) || marks_->any(ends) || any(ends);
}

std::vector<LostWrites::Ends> LostWrites::all_ends() const {
  std::vector<Ends> all;
  for (const auto& [client, of] : clients_)
    for (const Record& record : of.records) all.push_back(record.file.ends);
  std::ranges::sort(all);
  const auto same = std::ranges::unique(all);
  all.erase(same.begin(), same.end());
  return all;
}

std::vector<LostWrites::Record> LostWrites::records() const {
  std::vector<Record> all;
  for (const auto& [client, of] : clients_) all.insert(all.end(), of.records.begin(), of.records.end());
  return all;
}

void LostWrites::restore(std::vector<Record> records) {
  for (Record& record : records) {
    bound(record.loss.ranges);
    insert(std::move(record));
  }
  if (on_change_) on_change_();
}

// ---- room

void LostWrites::insert(Record record) {
  const Client client = record.file.ends.client;
  auto of = clients_.find(client);
  if (of == clients_.end())
    of = clients_.emplace(client, OfClient{owners_.try_emplace(owner_of_(client)).first, {}}).first;
  std::deque<Record>& records = of->second.records;
  // One loss is reported once, however many writes were lost; the latest cause counts.
  if (const auto same = find(records, record.file); same != records.end()) {
    auto& ranges = record.loss.ranges;
    if (same->loss.ranges.empty()) ranges.clear();
    if (!ranges.empty()) ranges.insert(ranges.end(), same->loss.ranges.begin(), same->loss.ranges.end());
    bound(ranges);
    *same = std::move(record);
    return;
  }
  const std::size_t bytes = bytes_of_name(record.file);
  Owner& owner = of->second.owner->second;
  ++waiting_, ++owner.files;
  name_bytes_ += bytes, owner.name_bytes += bytes;
  records.push_back(std::move(record));
  make_room();
}

void LostWrites::remove(Clients::iterator of, std::deque<Record>::iterator record) {
  const File file = record->file;
  const std::size_t bytes = bytes_of_name(file);
  const auto owner = of->second.owner;
  --waiting_, --owner->second.files;
  name_bytes_ -= bytes, owner->second.name_bytes -= bytes;
  of->second.records.erase(record);
  if (of->second.records.empty()) clients_.erase(of);
  if (owner->second.files == 0) owners_.erase(owner);
  marks_->record_gone(file);
}

void LostWrites::make_room() {
  const auto files_of = [](const auto& client) { return client.second.records.size(); };
  while (waiting_ > kMost || name_bytes_ > kMostNameBytes) {
    const auto owner = std::ranges::max_element(owners_, {}, [&](const auto& each) {
      return waiting_ > kMost ? each.second.files : each.second.name_bytes;
    });
    auto most = clients_.end();
    for (auto of = clients_.begin(); of != clients_.end(); ++of)
      if (of->second.owner == owner && (most == clients_.end() || files_of(*of) > files_of(*most))) most = of;
    ++counters_.evicted;
    if (journal_) journal_->evicted(most->second.records.front().file);
    remove(most, most->second.records.begin());
  }
}

void LostWrites::changed() {
  if (journal_) journal_->changed(*this);
  if (on_change_) on_change_();
}

}  // namespace longhaul::promises
