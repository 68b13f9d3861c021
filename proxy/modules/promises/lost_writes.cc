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

std::size_t hash_of(const std::u16string& spelled) { return std::hash<std::u16string>{}(spelled); }

void remember(std::vector<LostWrites::Record::OtherName>& told, const LostWrites::Record::OtherName& name) {
  constexpr std::size_t kMost = 8;  // beyond that the client is told by the earliest once more
  std::erase_if(told, [&](const auto& each) { return each.spelled == name.spelled; });
  if (told.size() >= kMost) told.erase(told.begin());
  told.push_back(name);
}

// `file` is spelled otherwise than `from`, which it is or which contains it.
bool is_spelled_otherwise(const LostWrites::File& file, const LostWrites::File& from) {
  return !file.spelled.empty() && !from.spelled.empty() && !file.spelled.starts_with(from.spelled);
}

template <class Map>
void erase_one(Map& map, const typename Map::key_type& key, typename Map::mapped_type value) {
  const auto [first, last] = map.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second == value; });
  if (found != last) map.erase(found);
}

}  // namespace

std::optional<LostWrites::File> name_after(const LostWrites::File& file, const LostWrites::File& from,
                                           const LostWrites::File& to) {
  const bool is_spelled = !file.spelled.empty() && !to.spelled.empty();
  if (file == from) {
    LostWrites::File moved = to;
    if (!is_spelled) moved.spelled.clear();
    return moved;
  }
  if (LostWrites::any_port(file.ends) != LostWrites::any_port(from.ends) || file.share != from.share ||
      !file.path.starts_with(from.path) || file.path.size() <= from.path.size() ||
      file.path[from.path.size()] != u'\\')
    return std::nullopt;
  LostWrites::File moved = to;
  moved.path.append(file.path, from.path.size());
  // Equal names are equally long, however they are spelled.
  if (is_spelled && file.spelled.size() == file.path.size())
    moved.spelled.append(file.spelled, from.path.size());
  else
    moved.spelled.clear();
  return moved;
}

std::size_t bytes_of_name(const LostWrites::File& file) {
  return (file.share.size() + file.path.size() + file.spelled.size()) * sizeof(char16_t);
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
    if (const auto found = find_exact(of->second.records, file); found != of->second.records.end())
      loss = found->loss;
  journal_->reported(file, loss, how);
}

bool LostWrites::tells(const Record& record, const File& file, Use use) {
  if (record.file != file) return false;
  if (record.file.is_exactly(file)) return use != Use::reads || !record.reader_told;
  if (use == Use::replaces) return false;
  const auto told =
      std::ranges::find(record.told_by_others, hash_of(file.spelled), &Record::OtherName::spelled);
  return told == record.told_by_others.end() || (told->only_read && use != Use::reads);
}

// All that tells(), each record once.
bool LostWrites::tell(const File& file, Use use, Told how) {
  bool any = false;
  for (;;) {
    const auto of = clients_.find(file.ends.client);
    if (of == clients_.end()) break;
    auto& records = of->second.records;
    const auto found =
        std::ranges::find_if(records, [&](const Record& each) { return tells(each, file, use); });
    if (found == records.end()) break;
    any = true;
    ++counters_.reported[static_cast<std::size_t>(how)];
    if (journal_) journal_->reported(found->file, found->loss, how);
    if (!found->file.is_exactly(file))
      remember(found->told_by_others, {hash_of(file.spelled), use == Use::reads});
    else if (use == Use::reads)
      found->reader_told = true;
    else
      remove(of, found);
  }
  if (any) changed();
  return any;
}

bool LostWrites::take(const File& file, Use use) {
  return use != Use::attributes && use != Use::replaces && tell(file, use, Told::next_open);
}

bool LostWrites::has(const File& file, Use use) const {
  const auto of = clients_.find(file.ends.client);
  return of != clients_.end() && use != Use::attributes &&
         std::ranges::any_of(of->second.records, [&](const Record& each) { return tells(each, file, use); });
}

bool LostWrites::has_record(const File& file) const {
  const auto of = clients_.find(file.ends.client);
  return of != clients_.end() && find_exact(of->second.records, file) != of->second.records.end();
}

void LostWrites::forget(const File& file) {
  bool any = false;
  for (;; any = true) {
    const auto of = clients_.find(file.ends.client);
    if (of == clients_.end()) break;
    const auto found = find_exact(of->second.records, file);
    if (found == of->second.records.end()) break;
    remove(of, found);
  }
  if (any) changed();
}

void LostWrites::told_by_reset(const File& file) { (void)tell(file, Use::writes, Told::reset); }

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
  if (file.is_exactly(to)) return;
  if (file != to) forget(to);  // else only its spelling changes
  marks_->moved(file, to);
  const auto [first, last] = named_.equal_range(any_port(file.ends));
  for (auto each = first; each != last; ++each) each->second->moved(file, to);
  const auto of = clients_.find(file.ends.client);
  if (of == clients_.end()) return;
  Owner& owner = of->second.owner->second;
  bool any = false;
  std::vector<Record> copies;  // whether the server takes both spellings for one file is not known
  for (Record& record : of->second.records) {
    const auto moved_to = name_after(record.file, file, to);
    if (!moved_to) continue;
    if (is_spelled_otherwise(record.file, file)) {
      copies.push_back({.file = *moved_to, .loss = record.loss});
      continue;
    }
    const std::size_t before = bytes_of_name(record.file), after = bytes_of_name(*moved_to);
    name_bytes_ += after - before, owner.name_bytes += after - before;
    record.file = *moved_to;
    any = true;
  }
  if (!any && copies.empty()) return;
  for (Record& copy : copies) insert(std::move(copy));
  make_room();
  changed();
}

void LostWrites::known_to(std::uint64_t near, const File& file) {
  bool any = false;
  for (; near != 0; any = true) {
    const auto of = clients_.find(file.ends.client);
    if (of == clients_.end()) break;
    auto& records = of->second.records;
    const auto found = std::ranges::find_if(
        records, [&](const Record& each) { return each.file == file && each.loss.near == near; });
    if (found == records.end()) break;
    remove(of, found);
  }
  if (any) changed();
}

void LostWrites::leave(const Ends& ends, LiveLedger* ledger) { erase_one(live_, any_port(ends), ledger); }

void LostWrites::end_live(const File& file, Cause cause, const LiveLedger* but, Reach reach) {
  const auto [first, last] = live_.equal_range(any_port(file.ends));
  bool given_up = false;
  for (auto each = first; each != last; ++each) {
    if (each->second == but || !each->second->owes()) continue;
    each->second->give_up(file, cause, reach);
    given_up |= !each->second->owes();
  }
  if (given_up && on_given_up_) on_given_up_();
}

void LostWrites::leave_names(const Ends& ends, OpenNames* names) { erase_one(named_, any_port(ends), names); }

std::shared_ptr<void> LostWrites::begin_rename(const Ends& ends) {
  renaming_.insert(any_port(ends));
  return {nullptr, [this, ends](void*) { renaming_.extract(any_port(ends)); }};
}

LostWrites::Unfinished LostWrites::finish_others(const File& file, const LiveLedger& own, Reach reach) {
  Unfinished all;
  const auto [first, last] = live_.equal_range(any_port(file.ends));
  for (auto each = first; each != last; ++each) {
    if (each->second == &own || !each->second->owes()) continue;
    const Unfinished one = each->second->finish(file, reach);
    if (one.bytes == 0) continue;
    all.bytes += one.bytes;
    all.moved_at = std::max(all.moved_at, one.moved_at);
  }
  return all;
}

bool LostWrites::any(const Ends& ends) const {
  const auto [first, last] = live_.equal_range(any_port(ends));
  return std::any_of(first, last, [](const auto& each) { return each.second->owes(); }) || has_records(ends);
}

bool LostWrites::has_records(const Ends& ends) const {
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
  if (const auto same = find_exact(records, record.file); same != records.end()) {
    record.file = same->file;
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
