// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/recent_talkers.h"

#include <algorithm>
#include <utility>

#include "proxy/config/network.h"

namespace longhaul::flows {

std::string talker_name(const FlowRecord& flow, TalkersBy by) {
  switch (by) {
    case TalkersBy::client:
      return config::unmapped(flow.client.address()).to_string();
    case TalkersBy::server:
      return flow.destination.host.empty() ? config::unmapped(flow.destination.address).to_string()
                                           : flow.destination.host;
    case TalkersBy::port:
      return std::to_string(flow.destination.port);
    case TalkersBy::peer:
      return flow.peer;
  }
  return {};
}

void RecentTalkers::add(const FlowRecord& ended, TimePoint now) {
  if (intervals_.empty() || now >= intervals_.back().begin + kInterval) {
    if (intervals_.size() == kIntervals) intervals_.pop_front();
    intervals_.push_back({.begin = now, .names = {}});
  }
  for (const auto by : {TalkersBy::client, TalkersBy::server, TalkersBy::port, TalkersBy::peer})
    add_to(intervals_.back().names[static_cast<std::size_t>(by)], talker_name(ended, by), ended.bytes);
}

// A new name replaces the smallest one if it is larger. Sums only grow, so `least` stays a lower bound: many
// small flows with ever new names are rejected without a search.
void RecentTalkers::add_to(Names& names, std::string name, const FlowBytes& bytes) {
  auto found = names.sums.find(name);
  if (found == names.sums.end()) {
    if (names.sums.size() == kNames) {
      const std::uint64_t size = bytes.lan_in + bytes.lan_out;
      if (size <= names.least) return;
      const auto smallest = std::ranges::min_element(names.sums, {}, [](const auto& each) { return each.second.lan(); });
      names.least = smallest->second.lan();
      if (size <= names.least) return;
      names.sums.erase(smallest);
    }
    found = names.sums.emplace(std::move(name), Sum{}).first;
  }
  ++found->second.flows;
  found->second.bytes += bytes;
}

RecentTalkers::Sums RecentTalkers::by(TalkersBy by, TimePoint now) const {
  Sums all;
  for (const Interval& interval : intervals_) {
    if (now - interval.begin >= kInterval * kIntervals) continue;
    for (const auto& [name, sum] : interval.names[static_cast<std::size_t>(by)].sums) {
      Sum& together = all[name];
      together.flows += sum.flows;
      together.bytes += sum.bytes;
    }
  }
  return all;
}

}  // namespace longhaul::flows
