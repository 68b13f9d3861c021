// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tools/wan/trace.h"

using namespace longhaul::wan;
using namespace std::chrono_literals;

namespace {
constexpr TimePoint kScheduleBegin{1h};

std::string error_of(std::string_view text) {
  const auto schedule = parse_schedule(text);
  return schedule ? "" : schedule.error();
}
}  // namespace

TEST_CASE("a schedule has times, settings, remarks, and may be repeated") {
  const auto schedule = parse_schedule(
      "# a line that fails over\n"
      "0 rate=20mbit delay=20ms   # at once\r\n"
      "\n"
      "  1500ms\tdelay=60ms\n"
      "2min a-to-b-cut=on b-to-a-loss=1%\n"
      "repeat 150");
  REQUIRE(schedule.has_value());
  REQUIRE(schedule->steps.size() == 3);
  CHECK(schedule->steps[0].at == 0s);
  CHECK(schedule->steps[0].assignments == std::vector<std::string>{"rate=20mbit", "delay=20ms"});
  CHECK(schedule->steps[1].at == 1500ms);
  CHECK(schedule->steps[2].at == 120s);
  CHECK(schedule->repeat == 150s);
}

TEST_CASE("what is wrong with a schedule is said with its line") {
  CHECK(error_of("") == "it contains no changes");
  CHECK(error_of("# only a remark\n") == "it contains no changes");
  CHECK(error_of("0 rate=1mbit\nsoon rate=2mbit") ==
        "line 2: \"soon\" is not a time from the start, such as 2.5s, 300ms or 2min");
  CHECK(error_of("5h rate=1mbit").starts_with("line 1: \"5h\" is not a time"));
  CHECK(error_of("-1 rate=1mbit").starts_with("line 1: \"-1\" is not a time"));
  CHECK(error_of("1e12 rate=1mbit").starts_with("line 1: \"1e12\" is not a time"));
  CHECK(error_of("3\n") == "line 1: a time needs at least one NAME=VALUE after it");
  CHECK(error_of("3 fast\n") == "line 1: \"fast\" is not NAME=VALUE");
  CHECK(error_of("3 speed=1\n") == "line 1: unknown setting \"speed\"");
  CHECK(error_of("3 loss=2\n") == "line 1: \"2\" is not a share from 0 to 1, such as 0.01 or 1%");
  CHECK(error_of("3 seed=2\n") == "line 1: the seed cannot change by schedule");
  CHECK(error_of("3 loss=1%\n\n2 loss=0") == "line 3: the times must not decrease");
  CHECK(error_of("3 loss=1%\nrepeat") == "line 2: repeat takes one time");
  CHECK(error_of("3 loss=1%\nrepeat 2s") == "line 2: the times must not decrease");
  CHECK(error_of("repeat 2s") == "line 1: repeat needs a time above 0 and lines before it");
  CHECK(error_of("3 loss=1%\nrepeat 4\n5 loss=0") == "line 3: nothing may follow \"repeat\"");
}

TEST_CASE("a schedule changes settings at its times, and again when it is repeated") {
  auto schedule = parse_schedule("0 rate=1mbit\n1 rate=2mbit loss=1%\n1 delay=5ms\n3 rate=3mbit\nrepeat 4");
  REQUIRE(schedule.has_value());
  SchedulePlayer player(*schedule, kScheduleBegin);
  LineSettings settings;
  const auto rate = [&] { return settings.a_to_b.line.rate_bits; };
  CHECK(player.apply_due(settings, kScheduleBegin));
  CHECK(rate() == 1'000'000);
  CHECK(player.next() == kScheduleBegin + 1s);
  CHECK_FALSE(player.apply_due(settings, kScheduleBegin + 999ms));
  CHECK(player.apply_due(settings, kScheduleBegin + 1s));
  CHECK(rate() == 2'000'000);
  CHECK(settings.b_to_a.line.loss == 0.01);
  CHECK(settings.b_to_a.line.delay == 5ms);
  CHECK(player.next() == kScheduleBegin + 3s);
  CHECK(player.apply_due(settings, kScheduleBegin + 4s));  // late: both are due
  CHECK(rate() == 1'000'000);
  CHECK(player.next() == kScheduleBegin + 5s);
  // A process that stood still for an hour does not work off what it has missed.
  CHECK(player.apply_due(settings, kScheduleBegin + 1h));
  CHECK(*player.next() > kScheduleBegin + 1h);
  CHECK(*player.next() <= kScheduleBegin + 1h + 4s);
}

TEST_CASE("a schedule that is not repeated ends") {
  SchedulePlayer player(*parse_schedule("1 rate=1mbit"), kScheduleBegin);
  LineSettings settings;
  CHECK(player.apply_due(settings, kScheduleBegin + 1h));
  CHECK_FALSE(player.next());
  CHECK_FALSE(player.apply_due(settings, kScheduleBegin + 2h));
}

TEST_CASE("every kind of trace is a valid schedule, the same for the same seed") {
  for (const TraceKind& kind : kTraceKinds) {
    INFO(kind.name);
    const TraceOptions options{.kind = std::string(kind.name), .seed = 3, .length = 60s};
    const auto trace = make_trace(options);
    REQUIRE(trace.has_value());
    const auto schedule = parse_schedule(trace->text);
    REQUIRE(schedule.has_value());
    CHECK(schedule->repeat == 60s);
    CHECK(schedule->steps.size() > 3);
    CHECK(make_trace(options)->text == trace->text);
    TraceOptions other = options;
    other.seed = 4;
    CHECK(make_trace(other)->text != trace->text);
  }
  CHECK(make_trace({.kind = "6g"}).error() == "\"6g\" is not one of lte, 5g, starlink, wifi");
  for (const Duration length : {Duration{0}, Duration{999'999}, Duration{24h + 1ms}})
    CHECK(make_trace({.kind = "lte", .length = length}).error() ==
          "lte must last at least 1 ms and at most a day");
  CHECK(make_trace({.kind = "wifi", .length = 2h}).error() ==
        "wifi must last at least 1 ms and at most an hour");
  CHECK(parse_schedule(make_trace({.kind = "lte", .length = 1ms})->text).has_value());
  // All lines of the longest are read again.
  const std::string longest = make_trace({.kind = "wifi", .length = 1h})->text;
  CHECK(std::count(longest.begin(), longest.end(), '\n') < 1'000'000);
}

TEST_CASE("the line of a Wi-Fi trace keeps what comes while it stands still") {
  const auto schedule = parse_schedule(make_trace({.kind = "wifi", .length = 1s})->text);
  REQUIRE(schedule.has_value());
  LineSettings settings;
  int stands = 0;
  for (const auto& step : schedule->steps) {
    for (const std::string& assignment : step.assignments)
      (void)apply(settings, assignment.substr(0, assignment.find('=')),
                  assignment.substr(assignment.find('=') + 1));
    const auto link = resolve(settings).b_to_a;
    if (link.rate_bits > 1000) continue;
    ++stands;
    CHECK(link.queue_bytes == 1 << 20);
  }
  CHECK(stands > 50);
}

TEST_CASE("the rate of an LTE trace wanders as published: 200 packets a second in a root of a second") {
  const auto schedule = parse_schedule(make_trace({.kind = "lte", .seed = 5, .length = 10000s})->text);
  REQUIRE(schedule.has_value());
  LineSettings settings;
  std::vector<double> packets;  // a second
  for (const auto& step : schedule->steps) {
    for (const std::string& assignment : step.assignments)
      (void)apply(settings, assignment.substr(0, assignment.find('=')),
                  assignment.substr(assignment.find('=') + 1));
    packets.push_back(static_cast<double>(settings.a_to_b.line.rate_bits) / 12000);
  }
  double squares = 0;
  int steps = 0, out = 0, outages = 0;
  for (std::size_t i = 1; i < packets.size(); ++i) {
    const bool was_out = packets[i - 1] < 0.5, is_out = packets[i] < 0.5;
    out += is_out;
    outages += is_out && !was_out;
    if (packets[i - 1] < 300 || packets[i - 1] > 700) continue;  // far from both ends
    squares += (packets[i] - packets[i - 1]) * (packets[i] - packets[i - 1]);
    ++steps;
  }
  REQUIRE(steps > 10'000);
  CHECK(std::sqrt(squares / steps / 0.1) == Approx(200).epsilon(0.03));
  CHECK(*std::max_element(packets.begin(), packets.end()) <= 1000);
  REQUIRE(outages > 100);
  CHECK(out * 0.1 / outages == Approx(1).margin(0.2));  // seconds
}
