// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_lines.h"

#include <algorithm>

namespace longhaul::link::udp {

UdpLine& UdpLines::named(const std::string& name) {
  for (auto& each : lines_)
    if (each->name() == name) return *each;
  lines_.push_back(std::make_unique<UdpLine>(name));
  return *lines_.back();
}

std::size_t UdpLines::in_use() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(lines_, [](const auto& line) { return line->newest() != nullptr; }));
}

bool UdpLines::works(const std::string& name) const {
  return std::ranges::any_of(
      lines_, [&](const auto& line) { return line->name() == name && line->best() != nullptr; });
}

bool UdpLines::any_works() const {
  return std::ranges::any_of(lines_, [](const auto& line) { return line->best() != nullptr; });
}

bool UdpLines::holds(const UdpPath* path) const {
  return std::ranges::any_of(lines_, [&](const auto& line) { return line->holds(path); });
}

template <class Is>
bool UdpLines::any_newest(Is is) const {
  return std::ranges::any_of(
      lines_, [&](const auto& line) { return line->newest() && is(line->newest()->carrier()); });
}

bool UdpLines::keys_worn_out() const {
  return any_newest([](const UdpCarrier& carrier) { return carrier.keys_worn_out(); });
}

bool UdpLines::drops_bursts() const {
  return any_newest([](const UdpCarrier& carrier) { return carrier.flight().bursts().drops_bursts(); });
}

std::optional<TimePoint> UdpLines::next_timeout(const UdpPath* sending) const {
  std::optional<TimePoint> next;
  for (const auto& line : lines_)
    if (const auto time = line->next_timeout(sending)) next = next ? std::min(*next, *time) : time;
  return next;
}

std::vector<LineMemory> UdpLines::memories() const {
  std::vector<LineMemory> known;
  for (const auto& line : lines_)
    if (const auto memory = line->memory()) known.push_back({line->name(), *memory});
  return known;
}

void UdpLines::fill(LinkStatus& status, const PathShares& shares, const std::vector<bool>& takes_part) const {
  UdpStatus& udp = status.udp;
  UdpCounters all;
  TimerLateness late;
  const std::size_t shown = shares.preferred ? *shares.preferred : 0;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const auto [of_line, late_of_line] = lines_[i]->figures();
    late += late_of_line;
    all += of_line;
    // Where none carries, one that exists.
    if (i == shown || (!shares.preferred && udp.state == UdpState::none)) udp = of_line;
    if (i == 0 || !lines_[i]->newest()) continue;
    const bool carries = i == shares.preferred;
    status.paths.push_back({.name = lines_[i]->name(),
                            .role = carries                         ? PathRole::carries
                                    : takes_part[i]                 ? PathRole::helps
                                    : of_line.state == UdpState::up ? PathRole::standby
                                                                    : PathRole::none,
                            .reason = carries ? shares.reason : "",
                            .cost = lines_[i]->cost(),
                            .udp = of_line});
  }
  static_cast<UdpCounters&>(udp) = all;
  if (late.times)
    udp.timer_lateness = std::chrono::duration_cast<std::chrono::microseconds>(late.sum / late.times);
  udp.worst_timer_lateness = std::chrono::duration_cast<std::chrono::microseconds>(late.worst);
}

}  // namespace longhaul::link::udp
