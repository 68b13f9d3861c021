// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/lost_records.h"

#include <utility>

namespace longhaul::promises {
namespace {

std::size_t hash_of(const std::u16string& spelled) { return std::hash<std::u16string>{}(spelled); }

auto find_exact(auto& records, const LostFile& file) {
  return std::ranges::find_if(records, [&](const LostRecord& each) { return each.file.is_exactly(file); });
}

}  // namespace

bool LostRecord::concerns(const LostFile& opened, Use use, link::TimePoint now) const {
  if (file != opened || is_over(now)) return false;
  if (file.is_exactly(opened)) return use != Use::reads || !reader_told;
  if (use == Use::replaces) return false;
  const auto told = std::ranges::find(told_by_others, hash_of(opened.spelled), &OtherName::spelled);
  return told == told_by_others.end() || (told->only_read && use != Use::reads);
}

void LostRecord::told_by(const LostFile& other, bool only_read) {
  constexpr std::size_t kMost = 8;  // beyond that the client is informed once more for the earliest
  const std::size_t spelled = hash_of(other.spelled);
  std::erase_if(told_by_others, [&](const auto& each) { return each.spelled == spelled; });
  if (told_by_others.size() >= kMost) told_by_others.erase(told_by_others.begin());
  told_by_others.push_back({.spelled = spelled, .only_read = only_read});
}

std::vector<LostRecord> LostRecords::all() const {
  std::vector<LostRecord> all;
  for (const auto& [client, of] : clients_) all.insert(all.end(), of.records.begin(), of.records.end());
  return all;
}

const LostRecords::List* LostRecords::of(const Client& client) const {
  const auto of = clients_.find(client);
  return of == clients_.end() ? nullptr : &of->second.records;
}

LostRecords::List* LostRecords::of(const Client& client) {
  const auto of = clients_.find(client);
  return of == clients_.end() ? nullptr : &of->second.records;
}

bool LostRecords::any(const Client& client, const Test& is_it) const {
  const List* const records = of(client);
  return records && std::ranges::any_of(*records, is_it);
}

const LostRecord* LostRecords::find(const LostFile& file) const {
  const List* const records = of(file.ends.client);
  if (!records) return nullptr;
  const auto found = find_exact(*records, file);
  return found == records->end() ? nullptr : &*found;
}

void LostRecords::for_each(const std::function<void(const LostRecord&)>& call) const {
  for (const auto& [client, of] : clients_)
    for (const LostRecord& record : of.records) call(record);
}

void LostRecords::insert(LostRecord record) {
  const Client client = record.file.ends.client;
  auto of = clients_.find(client);
  if (of == clients_.end())
    of = clients_.emplace(client, OfClient{owners_.try_emplace(owner_of_(client)).first, {}}).first;
  List& records = of->second.records;
  // One loss is reported once, however many writes were lost; the latest cause counts.
  if (const auto same = find_exact(records, record.file); same != records.end()) {
    record.file = same->file;
    auto& ranges = record.loss.ranges;
    if (same->loss.ranges.empty()) ranges.clear();
    if (!ranges.empty()) ranges.insert(ranges.end(), same->loss.ranges.begin(), same->loss.ranges.end());
    record.loss.bound_ranges();
    *same = std::move(record);
    return;
  }
  const std::size_t bytes = record.file.name_bytes();
  Owner& owner = of->second.owner->second;
  ++size_, ++owner.files;
  name_bytes_ += bytes, owner.name_bytes += bytes;
  records.push_back(std::move(record));
}

void LostRecords::rename(LostRecord& record, LostFile to) {
  Owner& owner = clients_.find(record.file.ends.client)->second.owner->second;
  const std::size_t before = record.file.name_bytes(), after = to.name_bytes();
  name_bytes_ += after - before, owner.name_bytes += after - before;
  record.file = std::move(to);
}

std::optional<LostRecord> LostRecords::remove_first(const Client& client,
                                                    const Test& is_it) {
  const auto of = clients_.find(client);
  if (of == clients_.end()) return std::nullopt;
  const auto found = std::ranges::find_if(of->second.records, is_it);
  if (found == of->second.records.end()) return std::nullopt;
  return take_out(of, found);
}

LostRecord LostRecords::take_out(Clients::iterator of, List::iterator record) {
  LostRecord taken = std::move(*record);
  const std::size_t bytes = taken.file.name_bytes();
  const auto owner = of->second.owner;
  --size_, --owner->second.files;
  name_bytes_ -= bytes, owner->second.name_bytes -= bytes;
  of->second.records.erase(record);
  if (of->second.records.empty()) clients_.erase(of);
  if (owner->second.files == 0) owners_.erase(owner);
  return taken;
}

std::optional<LostRecord> LostRecords::evict() {
  if (size_ <= kMost && name_bytes_ <= kMostNameBytes) return std::nullopt;
  const auto owner = std::ranges::max_element(owners_, {}, [&](const auto& each) {
    return size_ > kMost ? each.second.files : each.second.name_bytes;
  });
  const auto files_of = [](const auto& client) { return client.second.records.size(); };
  auto most = clients_.end();
  for (auto of = clients_.begin(); of != clients_.end(); ++of)
    if (of->second.owner == owner && (most == clients_.end() || files_of(*of) > files_of(*most))) most = of;
  return take_out(most, most->second.records.begin());
}

}  // namespace longhaul::promises
