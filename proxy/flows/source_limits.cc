// SPDX-License-Identifier: Apache-2.0
// An ordered map: clients choose the keys, and cannot slow it down.
#include "proxy/flows/source_limits.h"

#include <algorithm>
#include <cassert>

#include "proxy/config/network.h"

namespace longhaul::flows {

using boost::asio::ip::address;

template <class Visit>
bool SourceLimits::any_source(const address& client, Visit visit) const {
  const address plain = config::unmapped(client);
  const std::uint32_t most = limits_.flows_of_one_source();
  bool any = visit(config::network_of(plain, plain.is_v4() ? 32 : 128), most);
  if (plain.is_v6()) any |= visit(config::network_of(plain, 64), 2 * most);
  return any;
}

bool SourceLimits::is_crowded(const Source& source, std::uint32_t limit) {
  return source.flows >= (source.crowded ? limit - limit / 8 : limit);
}

void SourceLimits::limits_changed() {
  const std::uint32_t most = limits_.flows_of_one_source();
  for (auto& [source, entry] : sources_)
    entry.crowded =
        is_crowded(entry, !source.address.is_v4() && source.prefix_length == 64 ? 2 * most : most);
}

bool SourceLimits::change(const config::Network& source, std::uint32_t limit, std::int32_t by) {
  Source& entry = sources_[source];
  assert(by > 0 || entry.flows > 0);
  entry.flows += static_cast<std::uint32_t>(by);
  const bool was_crowded = entry.crowded;
  entry.crowded = is_crowded(entry, limit);
  const bool changed = entry.crowded != was_crowded;
  if (entry.flows == 0) sources_.erase(source);
  return changed;
}

bool SourceLimits::add(const address& client) {
  return any_source(client, [this](const config::Network& source, std::uint32_t limit) {
    return change(source, limit, 1);
  });
}

bool SourceLimits::remove(const address& client) {
  return any_source(client, [this](const config::Network& source, std::uint32_t limit) {
    return change(source, limit, -1);
  });
}

bool SourceLimits::at_limit(const address& client, std::uint32_t times) const {
  return any_source(client, [&](const config::Network& source, std::uint32_t limit) {
    const auto found = sources_.find(source);
    return found != sources_.end() && found->second.flows >= std::uint64_t{limit} * times;
  });
}

std::vector<config::Network> SourceLimits::crowded() const {
  std::vector<config::Network> list;
  for (const auto& [source, entry] : sources_)
    if (entry.crowded) list.push_back(source);
  return list;
}

}  // namespace longhaul::flows
