// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/doubt.h"

#include <algorithm>

namespace longhaul::flows {
namespace {

modules::Ends without_port(modules::Ends ends) {
  ends.server_port = 0;
  return ends;
}

}  // namespace

void Doubt::add(const modules::Ends& ends, const link::PeerLink& link) {
  ++links_[&link][without_port(ends)];
}

void Doubt::remove(const modules::Ends& ends, const link::PeerLink& link) {
  Flows& flows = links_.at(&link);
  const auto found = flows.find(without_port(ends));
  if (--found->second > 0) return;
  flows.erase(found);
  if (flows.empty()) links_.erase(&link);
}

bool Doubt::about(const modules::Ends& ends) const {
  const modules::Ends at_any_port = without_port(ends);
  return std::ranges::any_of(links_, [&](const auto& each) {
    return each.second.contains(at_any_port) && is_doubted_(*each.first);
  });
}

std::vector<modules::Ends> Doubt::all(std::size_t most) const {
  std::vector<const Flows*> doubted;
  for (const auto& [link, flows] : links_)
    if (is_doubted_(*link)) doubted.push_back(&flows);
  std::vector<modules::Ends> ends;
  for (const Flows* flows : doubted) {
    std::size_t left = most / doubted.size();
    for (auto each = flows->begin(); each != flows->end() && left > 0; ++each, --left)
      ends.push_back(each->first);
  }
  return ends;
}

}  // namespace longhaul::flows
