// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/handshake_gate.h"

#include <algorithm>

namespace longhaul::link {

double HandshakeGate::refill(Budget& budget, double burst, double per_second, TimePoint now) {
  const double seconds = std::chrono::duration<double>(now - budget.at).count();
  budget.tokens = budget.at == TimePoint{} ? burst : std::min(burst, budget.tokens + per_second * seconds);
  budget.at = now;
  return budget.tokens;
}

void HandshakeGate::know(const std::vector<boost::asio::ip::address>& addresses) {
  // A source with a handshake in progress is kept until that has ended, because its place is in this list.
  std::erase_if(known_, [&](const auto& entry) {
    return entry.second.line.empty() && std::ranges::find(addresses, entry.first) == addresses.end();
  });
  for (const auto& address : addresses) known_.try_emplace(config::unmapped(address));
}

boost::system::result<HandshakeGate::Place, Refusal> HandshakeGate::admit(
    const boost::asio::ip::address& from, TimePoint now, GiveUp give_up) {
  // A known address that has used up its budget is treated like any other source.
  if (auto known = known_.find(config::unmapped(from)); known != known_.end()) {
    Known& peer = known->second;
    if (refill(peer.budget, kKnownBurst, kKnownPerSecond, now) >= 1) {
      peer.budget.tokens -= 1;
      if (peer.line.size() >= kPlacesPerKnown) free_oldest(peer.line);
      return hold(from, Standing::known, peer.line, std::move(give_up));
    }
  }
  const SourceKey source = source_key(from);
  Budget& budget = budgets_[source];
  const double tokens = refill(budget, kBurst, kPerSecond, now);
  if (tokens < 1) return Refusal::source_rate;
  const auto own = places_of_.find(source);
  const std::uint32_t most = std::clamp(places_ / 4, 1u, kPlacesPerSource);
  if (own != places_of_.end() && own->second >= most) return Refusal::no_place;
  budget.tokens -= 1;
  const Standing standing = tokens == kBurst ? Standing::first : Standing::repeated;
  if (first_.size() + repeated_.size() >= places_) {
    if (repeated_.empty() && standing == Standing::repeated) return Refusal::no_place;
    free_oldest(repeated_.empty() ? first_ : repeated_);
  }
  return hold(from, standing, standing == Standing::first ? first_ : repeated_, std::move(give_up));
}

HandshakeGate::Place HandshakeGate::hold(const boost::asio::ip::address& from, Standing standing,
                                         std::list<std::uint64_t>& line, GiveUp give_up) {
  const Place place{++last_number_, standing};
  Held held{.source = source_key(from), .line = &line, .give_up = std::move(give_up)};
  if (standing == Standing::known)
    held.known = config::unmapped(from);
  else
    ++places_of_[held.source];
  held.in_line = line.insert(line.end(), place.number);
  held_.emplace(place.number, std::move(held));
  return place;
}

void HandshakeGate::leave(const Place& place) {
  const auto held = held_.find(place.number);
  if (held == held_.end()) return;
  held->second.line->erase(held->second.in_line);
  if (!held->second.known) {
    const auto own = places_of_.find(held->second.source);
    if (--own->second == 0) places_of_.erase(own);
  }
  held_.erase(held);
}

void HandshakeGate::free_oldest(std::list<std::uint64_t>& line) {
  const auto held = held_.find(line.front());
  const GiveUp give_up = std::move(held->second.give_up);
  leave({held->first, {}});
  if (give_up) give_up();
}

void HandshakeGate::charge(const Place& place, Duration processor, TimePoint now) {
  const auto held = held_.find(place.number);
  if (held == held_.end()) return;
  const double handshakes =
      std::chrono::duration<double>(processor) / std::chrono::duration<double>(kProcessorPerHandshake);
  const auto take = [&](Budget& budget, double burst, double per_second) {
    refill(budget, burst, per_second, now);
    budget.tokens = std::max(budget.tokens - handshakes, -burst);
  };
  if (!held->second.known) return take(budgets_[held->second.source], kBurst, kPerSecond);
  if (auto known = known_.find(*held->second.known); known != known_.end())
    take(known->second.budget, kKnownBurst, kKnownPerSecond);
}

}  // namespace longhaul::link
