// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/trace.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace longhaul::wan {
namespace {

constexpr double kPacketBits = 1500 * 8;
constexpr double kTick = 0.1;  // seconds

std::string fixed(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string line(double at, const std::string& settings) { return fixed(at, 3) + "s " + settings + "\n"; }

double normal(Chance& chance) {  // Box and Muller
  const double radius = std::sqrt(-2 * std::log(1 - chance.draw()));
  return radius * std::cos(2 * 3.14159265358979323846 * chance.draw());
}

// Winstein, Sivaraman, Balakrishnan: Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular
// Networks (Sprout), NSDI 2013, section 3: the rate of packets wanders in Brownian motion of 200 packets/s
// per square root of a second, between 0 and 1000 packets/s, and leaves an outage at a rate of one per
// second. `scale` of 1: that; more: a faster radio that varies in proportion, which the paper did not
// measure.
std::string cellular(Chance& chance, double seconds, double scale, double delay_ms) {
  const double sigma = 200, most = 1000, escape = 1;
  double rate = 500;
  bool outage = false;
  std::string out = line(0, "delay=" + fixed(delay_ms, 0) + "ms queue=1s");
  for (double at = 0; at < seconds; at += kTick) {
    if (outage) {
      if (chance.happens(1 - std::exp(-escape * kTick))) outage = false;
      rate = outage ? 0 : sigma * std::sqrt(kTick);
    } else {
      rate += sigma * std::sqrt(kTick) * normal(chance);
      if (rate > most) rate = 2 * most - rate;  // reflected
      outage = rate <= 0;
    }
    // A line of 1 kbit/s is as good as none, and keeps what waits.
    const double bits = outage ? 1000 : std::max(8000., rate * scale * kPacketBits);
    out += line(at, "rate=" + fixed(bits, 0) + "bit");
  }
  return out;
}

// Starlink assigns satellites anew every 15 s, at the same seconds of each minute, with steps of delay and
// rate at that moment and some loss around it (Tanveer et al., Making Sense of Constellations, CoNEXT 2023;
// Mohan et al., A Multifaceted Look at Starlink Performance, WWW 2024). The sizes of the steps here: 20 to 40
// ms one way is not measured by this project.
std::string starlink(Chance& chance, double seconds) {
  std::string out;
  for (double at = 0; at < seconds; at += 15) {
    const double delay = 12 + 18 * chance.draw(), rate = 50 + 100 * chance.draw();
    out += line(at, "delay=" + fixed(delay, 1) + "ms a-to-b-rate=" + fixed(rate / 8, 1) +
                        "mbit b-to-a-rate=" + fixed(rate, 1) + "mbit queue=100ms loss=5%");
    if (at + 0.1 < seconds) out += line(at + 0.1, "loss=0.2%");
  }
  return out;
}

// Frames gathered for one transmission: the line stands still while others transmit, and then takes what
// waited at once. The queue is given in bytes: as a time it would be that of the present rate, so next to
// nothing while the line stands still.
std::string wifi(Chance& chance, double seconds) {
  std::string out = line(0, "delay=15ms queue=1MiB");
  for (double at = 0; at < seconds;) {
    out += line(at, "rate=120mbit");
    at += 0.002 + 0.004 * chance.draw();
    if (at >= seconds) break;
    out += line(at, "rate=1kbit");
    at += 0.002 + 0.008 * chance.draw();
  }
  return out;
}

}  // namespace

const std::array<TraceKind, 4> kTraceKinds{{
    {"lte", "a rate that varies randomly between 0 and 12 Mbit/s, with outages"},
    {"5g", "the same, ten times as fast"},
    {"starlink", "steps of delay and rate every 15 s, with loss"},
    {"wifi", "a line that pauses for some milliseconds between bursts"},
}};

Parsed<Trace> make_trace(const TraceOptions& options) {
  const double seconds = std::chrono::duration<double>(options.length).count();
  // A schedule has milliseconds, and a million lines at most.
  const double most = options.kind == "wifi" ? 3600 : 86'400;
  if (!(seconds >= 0.001 && seconds <= most))
    return options.kind + " must last at least 1 ms and at most " + (most > 3600 ? "a day" : "an hour");
  Chance chance(options.seed, 32);
  const std::string end = "repeat " + fixed(seconds, 3) + "s\n";
  if (options.kind == "lte") return Trace{options.length, cellular(chance, seconds, 1, 25) + end};
  if (options.kind == "5g") return Trace{options.length, cellular(chance, seconds, 10, 10) + end};
  if (options.kind == "starlink") return Trace{options.length, starlink(chance, seconds) + end};
  if (options.kind == "wifi") return Trace{options.length, wifi(chance, seconds) + end};
  std::string known;
  for (const TraceKind& kind : kTraceKinds) known += (known.empty() ? "" : ", ") + std::string(kind.name);
  return "\"" + options.kind + "\" is not one of " + known;
}

}  // namespace longhaul::wan
