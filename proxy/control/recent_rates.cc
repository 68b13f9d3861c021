// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/recent_rates.h"

namespace longhaul::control {
namespace {

std::uint64_t per_second(std::uint64_t before, std::uint64_t now, std::chrono::duration<double> time) {
  return static_cast<std::uint64_t>(8.0 * static_cast<double>(now - before) / time.count());
}

}  // namespace

void RecentRates::add(Sample sample) {
  samples_.push_back(std::move(sample));
  if (samples_.size() > kSamples) samples_.pop_front();
}

std::optional<flows::FlowBytes> RecentRates::flows() const {
  if (samples_.size() < 2) return std::nullopt;
  const Sample &first = samples_.front(), &last = samples_.back();
  flows::FlowBytes rates;
  for (auto flows::FlowBytes::*const each : {&flows::FlowBytes::lan_in, &flows::FlowBytes::lan_out,
                                             &flows::FlowBytes::wan_in, &flows::FlowBytes::wan_out}) {
    if (last.flows.*each < first.flows.*each || last.at <= first.at) return std::nullopt;
    rates.*each = per_second(first.flows.*each, last.flows.*each, last.at - first.at);
  }
  return rates;
}

std::optional<RecentRates::Link> RecentRates::link(const std::string& peer) const {
  if (samples_.size() < 2) return std::nullopt;
  const Sample &first = samples_.front(), &last = samples_.back();
  const auto before = first.links.find(peer), now = last.links.find(peer);
  if (before == first.links.end() || now == last.links.end() || last.at <= first.at) return std::nullopt;
  if (now->second.sent < before->second.sent || now->second.received < before->second.received)
    return std::nullopt;
  return Link{per_second(before->second.sent, now->second.sent, last.at - first.at),
              per_second(before->second.received, now->second.received, last.at - first.at)};
}

}  // namespace longhaul::control
