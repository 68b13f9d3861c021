// SPDX-License-Identifier: Apache-2.0
// See lost_writes.h.
#include "proxy/modules/promises/lost_writes.h"

#include <algorithm>
#include <utility>

#include "codecs/work.h"
#include "proxy/modules/promises/marks.h"

namespace longhaul::promises {
namespace {

// Cost of a lookup, a log line, and a stored record.
constexpr std::uint64_t kWorkPerLoss = 10'000;

// `file` is spelled differently from `from`, which it is or which contains it.
bool is_spelled_otherwise(const LostFile& file, const LostFile& from) {
  return !file.spelled.empty() && !from.spelled.empty() && !file.spelled.starts_with(from.spelled);
}

bool is_between(const LostRecord& record, const modules::Ends& ends) {
  return any_port(record.file.ends) == any_port(ends);
}

}  // namespace

LostWrites::LostWrites(std::uint64_t number, OwnerOf owner_of)
    : number_(number), marks_(std::make_unique<Marks>(*this)), records_(std::move(owner_of)) {}

LostWrites::~LostWrites() = default;

void LostWrites::add(const File& file, Loss loss) {
  count_work(kWorkPerLoss);
  loss.bound_ranges();
  if (loss.cause != Cause::refused) events_.lost(file, loss);
  insert({.file = file, .loss = std::move(loss)});
  events_.changed();
}

void LostWrites::refused(const File& file, Interval range, std::uint32_t status) {
  const Loss loss{.cause = Cause::refused, .status = status, .ranges = {range}};
  events_.lost(file, loss);
  add(file, loss);
}

void LostWrites::told_late(const File& file, Told how) {
  Loss loss{.cause = Cause::refused};  // for a file that was truncated or forgotten since
  if (const Record* const record = records_.find(file)) loss = record->loss;
  events_.reported(file, loss, how);
}

// Reports all records that concern the open, each once.
bool LostWrites::tell(const File& file, Use use) {
  bool any = false;
  for (;;) {
    LostRecords::List* const records = records_.of(file.ends.client);
    if (!records) break;
    const auto found = std::ranges::find_if(
        *records, [&](const Record& each) { return each.concerns(file, use, clock_()); });
    if (found == records->end()) break;
    any = true;
    events_.reported(found->file, found->loss, Told::next_open);
    if (!found->file.is_exactly(file))
      found->told_by(file, use == Use::reads);
    else if (use == Use::reads)
      found->reader_told = true;
    else
      remove_first(file.ends.client, [&](const Record& each) { return &each == &*found; });
  }
  if (any) events_.changed();
  return any;
}

bool LostWrites::take(const File& file, Use use) {
  return use != Use::attributes && use != Use::replaces && tell(file, use);
}

bool LostWrites::has(const File& file, Use use) const {
  return use != Use::attributes && records_.any(file.ends.client, [&](const Record& each) {
    return each.concerns(file, use, clock_());
  });
}

bool LostWrites::has_record(const File& file) const {
  const Record* const record = records_.find(file);
  return record && !is_over(*record);
}

void LostWrites::forget(const File& file) {
  remove_where(file.ends.client, Ended::replaced,
               [&](const Record& each) { return each.file.is_exactly(file); });
}

void LostWrites::told_by_reset(const File& file) {
  drop_over(file.ends.client);
  LostRecords::List* const records = records_.of(file.ends.client);
  if (!records) return;
  bool any = false;
  for (Record& record : *records) {
    if (!record.concerns(file, Use::writes, clock_()) || record.reset_at) continue;
    any = true;
    events_.reported(record.file, record.loss, Told::reset);
    if (record.file.is_exactly(file))
      record.reset_at = clock_();
    else
      record.told_by(file, false);
  }
  if (any) events_.changed();
}

bool LostWrites::told_by_reset(const Ends& ends) {
  drop_over(ends.client);
  std::vector<File> files;
  if (const LostRecords::List* const records = records_.of(ends.client))
    for (const Record& each : *records)
      if (is_between(each, ends)) files.push_back(each.file);
  for (const File& file : files) told_by_reset(file);
  return !files.empty();
}

void LostWrites::moved(const File& file, const File& to) {
  if (file.is_exactly(to)) return;
  if (file != to) forget(to);  // otherwise only its spelling changes
  marks_->moved(file, to);
  live_.moved(file, to);
  LostRecords::List* const records = records_.of(file.ends.client);
  if (!records) return;
  bool any = false;
  std::vector<Record> copies;  // it is not known whether the server treats both spellings as one file
  for (Record& record : *records) {
    auto moved_to = name_after(record.file, file, to);
    if (!moved_to) continue;
    if (is_spelled_otherwise(record.file, file)) {
      copies.push_back({.file = *std::move(moved_to), .loss = record.loss});
      continue;
    }
    records_.rename(record, *std::move(moved_to));
    any = true;
  }
  if (!any && copies.empty()) return;
  for (Record& copy : copies) insert(std::move(copy));
  make_room();
  events_.changed();
}

void LostWrites::known_to(std::uint64_t near, const File& file) {
  if (near == 0) return;
  remove_where(file.ends.client, Ended::not_lost,
               [&](const Record& each) { return each.file == file && each.loss.near == near; });
}

void LostWrites::known_to(std::uint64_t near, const Ends& ends) {
  if (near == 0) return;
  remove_where(ends.client, Ended::not_lost,
               [&](const Record& each) { return is_between(each, ends) && each.loss.near == near; });
}

bool LostWrites::any(const Ends& ends) const { return live_.owe(ends) || has_records(ends); }

bool LostWrites::has_records(const Ends& ends) const {
  return records_.any(ends.client,
                      [&](const Record& each) { return is_between(each, ends) && !is_over(each); });
}

bool LostWrites::may_lose(const Ends& ends) const {
  return live_.may_promise(ends) || marks_->any(ends) || any(ends);
}

std::vector<LostWrites::Ends> LostWrites::all_ends() const {
  std::vector<Ends> all;
  records_.for_each([&](const Record& record) {
    if (!is_over(record)) all.push_back(record.file.ends);
  });
  std::ranges::sort(all);
  const auto same = std::ranges::unique(all);
  all.erase(same.begin(), same.end());
  return all;
}

void LostWrites::restore(std::vector<Record> records) {
  for (Record& record : records) {
    record.loss.bound_ranges();
    insert(std::move(record));
  }
  events_.restored();
}

void LostWrites::drop_over(const Client& client) {
  remove_where(client, std::nullopt, [&](const Record& each) { return is_over(each); });
}

void LostWrites::remove_where(const Client& client, std::optional<Ended> why,
                              const LostRecords::Test& is_void) {
  bool any = false;
  while (const auto removed = remove_first(client, is_void)) {
    if (why) events_.ended(removed->file, removed->loss, *why);
    any = true;
  }
  if (any) events_.changed();
}

std::optional<LostRecord> LostWrites::remove_first(const Client& client, const LostRecords::Test& is_it) {
  auto removed = records_.remove_first(client, is_it);
  if (removed) marks_->record_gone(removed->file);
  return removed;
}

void LostWrites::insert(Record record) {
  records_.insert(std::move(record));
  make_room();
}

void LostWrites::make_room() {
  while (const auto evicted = records_.evict()) {
    events_.evicted(evicted->file);
    marks_->record_gone(evicted->file);
  }
}

}  // namespace longhaul::promises
