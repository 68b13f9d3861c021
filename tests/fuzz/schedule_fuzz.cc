// SPDX-License-Identifier: Apache-2.0
// Any text is a schedule of the line or a sentence that names a line of it; one that was accepted plays in
// the order of its times, and a line that it changes loses no packet without counting it. Every trace is a
// schedule. The first byte chooses.
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "tools/wan/link.h"
#include "tools/wan/trace.h"

namespace longhaul::fuzz::schedule_target {
using namespace longhaul::wan;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kStart{1h};
constexpr int kMostSteps = 200;

// Every packet comes out, is refused at once, or is reported as dropped, as the counters say.
class WatchedLink {
 public:
  WatchedLink(const LinkConfig& config, std::uint64_t seed) : link_(config, seed) {}
  void change(TimePoint at, const LinkConfig& config) {
    link_.change(at, config);
    drain(at);
  }
  void arrive(TimePoint at) {
    const auto number = static_cast<PacketId>(arrived_++);
    const PacketTraits traits{.flow = number % 5, .ecn = number % 3 ? Ecn::capable : Ecn::not_capable};
    carried_ += link_.arrive(at, 40 + number * 97 % 1460, number, traits) == Fate::carried;
  }
  void end(TimePoint at) {
    drain(at);
    require(link_.packets_inside() == 0 && link_.queued_bytes(at) == 0 && !link_.next_wakeup());
    require(out_ == carried_);
    const LinkCounters& counted = link_.counters();
    require(counted.packets_in == arrived_);
    require(counted.packets_out + counted.lost + counted.dropped + counted.policed + counted.cut ==
            counted.packets_in + counted.duplicated);
    require(counted.dropped_early <= counted.dropped);
  }

 private:
  void drain(TimePoint at) {
    TimePoint before{};
    while (const auto departure = link_.poll(at)) {
      require(departure->at <= at);
      if (departure->copies > 0) require(std::exchange(before, departure->at) <= departure->at);
      ++out_;
    }
  }

  Link link_;
  std::uint64_t arrived_ = 0, carried_ = 0, out_ = 0;
};

void play(const Schedule& schedule) {
  SchedulePlayer player(schedule, kStart);
  LineSettings settings;
  settings.a_to_b.line.rate_bits = 1'000'000;
  WatchedLink link{resolve(settings).a_to_b, 1};
  TimePoint now = kStart;
  for (int i = 0; i < kMostSteps; ++i) {
    const auto next = player.next();
    if (!next) break;
    require(*next >= now);
    now = *next;
    require(player.apply_due(settings, now));
    link.change(now, resolve(settings).a_to_b);
    for (int packet = 0; packet < 3; ++packet) link.arrive(now + packet * 10us);
    require(!player.next() || *player.next() > now);
  }
  // Long enough for the slowest line.
  link.end(now + 24h * 3650);
  // Played late, it ends or goes on in the future.
  SchedulePlayer late(schedule, kStart);
  require(late.apply_due(settings, now + 1h) && (!late.next() || *late.next() > now));
}

void read_schedule(std::string_view text) {
  const auto schedule = parse_schedule(text);
  if (!schedule) {
    require(schedule.error() == "it contains no changes" || schedule.error().starts_with("line "));
    return;
  }
  require(!schedule->steps.empty());
  Duration before{0};
  for (const Schedule::Step& step : schedule->steps) {
    require(std::exchange(before, step.at) <= step.at && !step.assignments.empty());
  }
  require(schedule->length() >= before);
  play(*schedule);
}

void read_trace(Choices choices) {
  const TraceOptions options{.kind = std::string(kTraceKinds[choices.below(kTraceKinds.size())].name),
                             .seed = choices.number(),
                             .length = Duration{choices.number() * 70'000 % 20'000'000'000}};
  const auto trace = make_trace(options);
  if (!trace) return require(!trace.error().empty());
  const auto schedule = parse_schedule(trace->text);
  require(schedule && schedule->repeat.has_value());
  play(*schedule);
}

}  // namespace

FUZZ_TARGET(schedule) {
  if (size == 0) return 0;
  if (data[0] % 2 == 0)
    read_schedule({reinterpret_cast<const char*>(data) + 1, size - 1});
  else
    read_trace(Choices(Bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1)));
  return 0;
}

}  // namespace longhaul::fuzz::schedule_target
