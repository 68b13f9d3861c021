// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/live_flows.h"

#include <algorithm>

namespace longhaul::promises {
namespace {

template <class Map>
void erase_one(Map& map, const typename Map::key_type& key, typename Map::mapped_type value) {
  const auto [first, last] = map.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second == value; });
  if (found != last) map.erase(found);
}

}  // namespace

void LiveFlows::leave(const Ends& ends, LiveLedger* ledger) { erase_one(promising_, any_port(ends), ledger); }

bool LiveFlows::owe(const Ends& ends) const {
  const auto [first, last] = promising_.equal_range(any_port(ends));
  return std::any_of(first, last, [](const auto& each) { return each.second->owes(); });
}

void LiveFlows::end(const LostFile& file, Cause cause, const LiveLedger* but, Reach reach) {
  const auto [first, last] = promising_.equal_range(any_port(file.ends));
  bool given_up = false;
  for (auto each = first; each != last; ++each) {
    if (each->second == but || !each->second->owes()) continue;
    each->second->give_up(file, cause, reach);
    given_up |= !each->second->owes();
  }
  if (given_up && on_given_up_) on_given_up_();
}

Unfinished LiveFlows::finish_others(const LostFile& file, const LiveLedger& own, Reach reach) {
  Unfinished all;
  const auto [first, last] = promising_.equal_range(any_port(file.ends));
  for (auto each = first; each != last; ++each) {
    if (each->second == &own || !each->second->owes()) continue;
    const Unfinished one = each->second->finish(file, reach);
    if (one.bytes == 0) continue;
    all.bytes += one.bytes;
    all.moved_at = std::max(all.moved_at, one.moved_at);
  }
  return all;
}

void LiveFlows::leave_names(const Ends& ends, OpenNames* names) { erase_one(named_, any_port(ends), names); }

void LiveFlows::moved(const LostFile& file, const LostFile& to) {
  const auto [first, last] = named_.equal_range(any_port(file.ends));
  for (auto each = first; each != last; ++each) each->second->moved(file, to);
}

std::shared_ptr<void> LiveFlows::begin_rename(const Ends& ends) {
  renaming_.insert(any_port(ends));
  return {nullptr, [this, ends](void*) { renaming_.extract(any_port(ends)); }};
}

}  // namespace longhaul::promises
