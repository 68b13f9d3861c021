// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/simulated/changing_line.h"

#include <algorithm>

#include "tools/wan/schedule.h"
#include "tools/wan/trace.h"

namespace longhaul::bench {
namespace {

constexpr Duration kLongest = 90s;  // no run takes longer

simulator::LineConfig line_of(const wan::LineSettings& settings) {
  const wan::LineConfig line = wan::resolve(settings);
  return {{.link = line.a_to_b, .mtu_bytes = 1500}, {.link = line.b_to_a, .mtu_bytes = 1500}, Duration{0}};
}

double carried_bits(const wan::LinkConfig& link) {
  if (link.cut) return 0;
  const auto rate = static_cast<double>(link.rate_bits);
  const double passes = link.policer ? std::min(rate, static_cast<double>(link.policer->rate_bits)) : rate;
  return passes * (1 - link.loss);
}

}  // namespace

double Changes::mean_bits(Duration time) const {
  double bits = 0;
  Duration since{0};
  double rate = carried_bits(first.b_to_a.link);
  for (const Step& step : steps) {
    const Duration at = std::min(step.at, time);
    bits += rate * in_seconds(at - since);
    since = at;
    rate = carried_bits(step.line.b_to_a.link);
  }
  return (bits + rate * in_seconds(time - since)) / in_seconds(time);
}

Changes read_changes(const std::string& schedule, std::uint64_t seed) {
  std::string text = schedule;
  if (schedule.starts_with("trace ")) {
    const std::string words = schedule.substr(6);
    const auto kind_ends = std::min(words.find(' '), words.size());
    const auto trace = wan::make_trace({.kind = words.substr(0, kind_ends), .seed = seed});
    if (!trace) Simulation::fail(trace.error().c_str());
    text = trace->text;
    text.insert(text.find('\n'), words.substr(kind_ends));
  }
  const auto parsed = wan::parse_schedule(text);
  if (!parsed) Simulation::fail(parsed.error().c_str());
  wan::LineSettings settings;
  wan::SchedulePlayer player(*parsed, TimePoint{});
  player.apply_due(settings, TimePoint{});
  Changes changes{.first = line_of(settings), .steps = {}};
  while (player.next() && *player.next() < TimePoint{} + kLongest) {
    const TimePoint at = *player.next();
    player.apply_due(settings, at);
    changes.steps.push_back({at - TimePoint{}, line_of(settings)});
  }
  changes.highest_bits = changes.first.b_to_a.link.rate_bits;
  for (const auto& step : changes.steps)
    changes.highest_bits = std::max(changes.highest_bits, step.line.b_to_a.link.rate_bits);
  return changes;
}

void play(const Changes& changes, simulator::Network& network, simulator::Line& line) {
  for (const auto& step : changes.steps)
    network.after(step.at, [&line, config = step.line] {
      line.a_to_b().change(config.a_to_b);
      line.b_to_a().change(config.b_to_a);
    });
}

}  // namespace longhaul::bench
