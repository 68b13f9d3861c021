// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/schedule.h"

#include <cmath>

namespace longhaul::wan {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostSteps = 1'000'000;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const auto end = std::min(line.find_first_of(" \t\r"), line.size());
    if (line.front() == '#') break;
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

// Longer than any other time of the line.
Parsed<Duration> parse_moment(std::string_view text) {
  const std::string wanted =
      "\"" + std::string(text) + "\" is not a time from the start, such as 2.5s, 300ms or 2min";
  const auto quantity = parse_quantity(text);
  if (!quantity) return wanted;
  double unit = 0;
  if (quantity->unit == "s" || quantity->unit.empty()) unit = 1e9;
  if (quantity->unit == "ms") unit = 1e6;
  if (quantity->unit == "min") unit = 60e9;
  const double nanos = quantity->number * unit;
  if (unit == 0 || nanos > 1e9 * 86'400 * 30) return wanted;
  return Duration{std::llround(nanos)};
}

// One line; the answer is a sentence if it is wrong.
std::optional<std::string> read_line(const std::vector<std::string_view>& words, Schedule& schedule) {
  if (schedule.repeat) return "nothing may follow \"repeat\"";
  const bool repeats = words.front() == "repeat";
  if (repeats && words.size() != 2) return "repeat takes one time";
  const auto at = parse_moment(words[repeats ? 1 : 0]);
  if (!at) return at.error();
  if (!schedule.steps.empty() && *at < schedule.steps.back().at) return "the times must not decrease";
  if (repeats) {
    if (*at == Duration{0} || schedule.steps.empty())
      return "repeat needs a time above 0 and lines before it";
    schedule.repeat = *at;
    return std::nullopt;
  }
  if (words.size() == 1) return "a time needs at least one NAME=VALUE after it";
  if (schedule.steps.size() == kMostSteps) return "more than a million lines";
  Schedule::Step step{*at, {}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (equals == std::string_view::npos) return "\"" + std::string(words[i]) + "\" is not NAME=VALUE";
    LineSettings tried;
    const std::string_view name = words[i].substr(0, equals);
    if (name == "seed") return "the seed cannot change by schedule";
    if (auto error = apply(tried, name, words[i].substr(equals + 1))) return error;
    step.assignments.emplace_back(words[i]);
  }
  schedule.steps.push_back(std::move(step));
  return std::nullopt;
}

}  // namespace

Parsed<Schedule> parse_schedule(std::string_view text) {
  Schedule schedule;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    if (const auto error = read_line(words, schedule))
      return "line " + std::to_string(number) + ": " + *error;
  }
  if (schedule.steps.empty()) return std::string("it contains no changes");
  return schedule;
}

std::optional<TimePoint> SchedulePlayer::next() const {
  if (step_ == schedule_.steps.size()) return std::nullopt;
  return start_ + schedule_.steps[step_].at;
}

bool SchedulePlayer::apply_due(LineSettings& settings, TimePoint now) {
  bool any = false;
  for (auto at = next(); at && *at <= now; at = next()) {
    any = true;
    for (const std::string& assignment : schedule_.steps[step_].assignments) {
      const auto equals = assignment.find('=');
      // Valid: the parser has tried it.
      (void)apply(settings, std::string_view(assignment).substr(0, equals),
                  std::string_view(assignment).substr(equals + 1));
    }
    if (++step_ < schedule_.steps.size() || !schedule_.repeat) continue;
    step_ = 0;
    start_ += *schedule_.repeat;
    // After a long pause of the process only the newest round matters.
    if (now - start_ > *schedule_.repeat) start_ += (now - start_) / *schedule_.repeat * *schedule_.repeat;
  }
  return any;
}

}  // namespace longhaul::wan
