// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/propagation.h"

#include <algorithm>

namespace longhaul::wan {

TimePoint Propagation::in_order(TimePoint at) const { return std::max(floor_, at); }

void Propagation::send(Packet packet) {
  packet.at = floor_ = in_order(packet.at);
  in_order_.push_back(packet);
}

void Propagation::hold_back(Packet packet, Duration time) {
  packet.at = in_order(packet.at) + time;
  held_back_.push(packet);
}

Propagation::Out Propagation::take(const Packet& packet) {
  const bool is_late = packet.number < highest_out_;
  highest_out_ = std::max(highest_out_, packet.number + 1);
  return {packet, is_late};
}

std::optional<Propagation::Out> Propagation::poll(TimePoint now) {
  const bool is_next = !in_order_.empty() && in_order_.front().at <= now;
  const bool late = !held_back_.empty() && held_back_.top().at <= now;
  if (is_next && (!late || held_back_.top() > in_order_.front())) {
    const Packet packet = in_order_.front();
    in_order_.pop_front();
    return take(packet);
  }
  if (!late) return std::nullopt;
  const Packet packet = held_back_.top();
  held_back_.pop();
  return take(packet);
}

std::optional<TimePoint> Propagation::next() const {
  std::optional<TimePoint> next;
  if (!in_order_.empty()) next = in_order_.front().at;
  if (!held_back_.empty()) next = next ? std::min(*next, held_back_.top().at) : held_back_.top().at;
  return next;
}

}  // namespace longhaul::wan
