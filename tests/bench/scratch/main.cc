#include <cstdio>
#include <cstdlib>
#include <string>
#include "proxy/link/udp/measured_law.h"
#include "proxy/link/udp/paced_law.h"
#include "tests/proxy/link/udp/bulk_model.h"
#include "tests/simulator/tcp.h"
using namespace longhaul; using namespace longhaul::link::udp; using namespace longhaul::simulator; using namespace std::chrono_literals;
static DirectionConfig dir(double mbit, double rtt_ms, double loss) {
  const double bits = mbit * 1e6;
  return {.link = {.rate_bits = (std::uint64_t)bits, .queue_bytes = std::max<std::uint64_t>(65536, (std::uint64_t)(bits / 8 * rtt_ms / 1e3)),
     .delay = std::chrono::microseconds((long)(rtt_ms * 500)), .loss = loss}};
}
// scratch law(m|p) seed loss  r0 rtt0 r1 rtt1 [tracefrom tracestep]
int main(int c, char** v) {
  if (c < 8) return 1;
  const bool paced = *v[1] == 'p';
  const std::uint64_t seed = std::atoi(v[2]); const double loss = std::atof(v[3]);
  const double r0 = std::atof(v[4]), t0 = std::atof(v[5]), r1 = std::atof(v[6]), t1 = std::atof(v[7]);
  const int step = c > 8 ? std::atoi(v[8]) : 0; const double until = c > 9 ? std::atof(v[9]) : 3;
  const bool cubic = std::getenv("CUBIC");
  Network network(seed);
  Line& line = network.add_line(LineConfig::symmetric(dir(r0, t0, loss)));
  std::unique_ptr<RateLaw> law;
  if (paced) law = std::make_unique<PacedLaw>(PacedConfig{.rate = (std::uint64_t)(r0 * 1e6 / 8), .seed = seed}, network.now());
  else law = std::make_unique<MeasuredLaw>(MeasuredConfig{.seed = seed}, network.now());
  TcpReceiver receiver; TcpSender sender({.to = {2, 9}, .start = network.now()}, std::make_unique<CubicLaw>());
  if (cubic) { auto& n = network.attach(sender, line, LineEnd::a, {1, 9}); network.attach(receiver, line, LineEnd::b, {2, 9}); n.wake(); }
  BulkFlow flow(network, line, 1, std::move(law), std::chrono::microseconds((long)(t0 * 1000)));
  network.run_for(10s);
  const auto start = network.now();
  line.a_to_b().change(dir(r1, t1, loss)); line.b_to_a().change(dir(r1, t1, loss));
  if (step) for (int ms = 0; ms < until * 1000; ms += step) network.after(std::chrono::milliseconds(ms), [&] {
    const MeasuredLaw* m = dynamic_cast<const MeasuredLaw*>(&flow.sender.law());
    const PacedLaw* p = dynamic_cast<const PacedLaw*>(&flow.sender.law());
    if (p) m = p->guard();
    auto view = flow.sender.law().view();
    std::printf("  %7.3f pace %7.2f win %6.0f fl %6.0f realq %6.1f q %6.1f base %6.1f line %6.2f %s%s dropped %llu\n", seconds(network.now() - start), flow.sender.law().pacing_rate() * 8e-6,
      flow.sender.law().window() / 1500., flow.sender.sent().bytes_in_flight() / 1500., seconds(line.a_to_b().queue_delay()) * 1e3, seconds(view.queue) * 1e3, view.base_rtt ? seconds(*view.base_rtt) * 1e3 : 0,
      view.line_rate * 8e-6, view.phase, m && m->watch().doubts() ? " DOUBT" : "", (unsigned long long)line.a_to_b().counters().link.dropped);
  });
  network.run_for(20s);
  std::printf("%s seed %s loss %s %s/%s -> %s/%s:", v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
  const double after = 3 * t1 / 1e3 + 0.5;
  auto share = [&](double from, double to) { auto at = [&](double s) { return start + std::chrono::microseconds((long)(s * 1e6)); }; return 100 * flow.rate(at(from), at(to)) / (r1 * 1e6 * (1 - loss)); };
  for (int i = 0; i < 16; ++i) std::printf(" %.0f", share(i, i + 1));
  std::printf("  | from 3RTT+.5: %.1f (1s) %.1f (5s) drops %llu\n", share(after, after + 1), share(after, after + 5), (unsigned long long)line.a_to_b().counters().link.dropped);
}
