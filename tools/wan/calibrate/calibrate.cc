// SPDX-License-Identifier: Apache-2.0
// The four tables. Each row starts a new emulator with one setting, as a user would.
#include "tools/wan/calibrate/calibrate.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tools/wan/calibrate/goals.h"
#include "tools/wan/calibrate/rig.h"
#include "tools/wan/calibrate/source.h"
#include "tools/wan/calibrate/traffic.h"

namespace longhaul::wan {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kPacketBytes = 1500;
// Of 1500 IP bytes TCP with time stamps carries 1448; the source's 93.64 % also counts Ethernet's headers.
constexpr double kPayloadBound = 1448.0 / 1500;
constexpr double kSourceBound = 0.9364;

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
  std::array<char, 160> buffer;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer.data(), buffer.size(), format, arguments);
  va_end(arguments);
  return buffer.data();
}

std::string or_dash(const char* format, std::optional<double> value) {
  if (!value) return "-";
  std::array<char, 64> buffer;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  std::snprintf(buffer.data(), buffer.size(), format, *value);
#pragma GCC diagnostic pop
  return buffer.data();
}

// A row of right-aligned columns, and on a terminal what is being measured meanwhile.
class Report {
 public:
  explicit Report(std::ostream& out) : out_(out), live_(::isatty(STDERR_FILENO) == 1) {}
  void title(const std::string& title) { out_ << "\n" << title << "\n" << std::flush; }
  void row(const std::vector<std::string>& cells) {
    if (live_) std::cerr << "\r\033[K" << std::flush;
    for (const std::string& cell : cells) out_ << text("%15s", cell.c_str());
    out_ << "\n" << std::flush;
  }
  void verdict(std::vector<std::string> cells, bool good) {
    cells.push_back(good ? "pass" : "FAIL");
    missed_ += good ? 0 : 1;
    row(cells);
  }
  void doing(const std::string& what) {
    if (live_) std::cerr << "\r\033[K  measuring " << what << " ..." << std::flush;
  }
  unsigned missed() const { return missed_; }

 private:
  std::ostream& out_;
  bool live_;
  unsigned missed_ = 0;
};

double ping_mean_ms(const Rig& rig, unsigned count, const std::string& interval) {
  // The first packet also asks for the neighbour's address; the mean is to be the line's.
  run_inside(rig.left(), {"ping", "-q", "-c", "1", "-W", "5", Rig::kRightAddress});
  Program ping{rig.left(),
               {"ping", "-q", "-c", std::to_string(count), "-i", interval, "-W", "5", Rig::kRightAddress}};
  const std::string said = ping.finish(10min);
  const auto numbers = said.find(" = ");
  const auto mean = numbers == std::string::npos ? numbers : said.find('/', numbers);
  if (mean == std::string::npos) throw std::runtime_error("ping printed no round-trip times: " + said);
  return std::stod(said.substr(mean + 1));
}

double iperf_bits(const Rig& rig, unsigned seconds) {
  Program server{rig.right(), {"iperf3", "-s", "-1", "--forceflush"}};
  server.await_text("listening", 5s);
  Program client{rig.left(),
                 {"iperf3", "-c", Rig::kRightAddress, "-t", std::to_string(seconds), "-C", "cubic", "-J"}};
  const auto json = boost::json::parse(client.finish(std::chrono::seconds{seconds} + 2min));
  server.finish(30s);
  return json.at("end").at("sum_received").at("bits_per_second").to_number<double>();
}

double iperf_mean_bits(const Rig& rig, unsigned runs, unsigned seconds) {
  double sum = 0;
  for (unsigned run = 0; run < runs; ++run) sum += iperf_bits(rig, seconds);
  return sum / runs;
}

void bandwidth(const Rig& rig, const CalibrateOptions& options, Report& report) {
  report.title(
      "Bandwidth. Measured: IP bits per second at the far end under constant overload, from the kernel's "
      "timestamps.\n"
      "iperf3: TCP (CUBIC), share of the payload bound (1448/1500). Source: share of its bound (93.64 %). "
      "Goal: 1 %.");
  report.row({"set kbit/s", "measured", "accuracy %", "iperf3 kbit/s", "of bound %", "source kbit/s",
              "of bound %", "goal"});
  boost::json::value counters;  // of the latest row
  for (const double kbit : {64., 256., 1024., 4096., 10'000., 51'840., 100'000., 155'000., 622'000.}) {
    report.doing(text("%g kbit/s", kbit));
    const std::string rate = text("%gkbit", kbit);
    // 27 packets at 64 kbit/s: with stamps good to 0.1 ms, 0.002 % of 5 s.
    const auto duration = options.quick ? (kbit < 1000 ? 2500ms : 1000ms) : 5000ms;
    Received received;
    {
      // Sent half as much again, into a queue that lasts while the sender is kept from running.
      RunningLine line{rig, options.program, {"--rate", rate, "--queue", "200ms"}};
      received = send_and_count(
          rig,
          {.rate_bits = kbit * 1500, .packet_bytes = kPacketBytes, .duration = duration, .settle = 100ms});
      counters = line.finish();
    }
    const double measured = received.rate_bits(kPacketBytes) / 1000;
    std::optional<double> iperf;
    if (!options.quick) {
      // Long enough that the line and not the two programs' time slices set the pace, and short enough that
      // the first packets of a run are out long before it ends.
      const std::string queue = kbit < 1000 ? "1s" : "100ms";
      RunningLine line{rig, options.program, {"--rate", rate, "--queue", queue}};
      iperf = iperf_mean_bits(rig, options.runs, kbit < 1000 ? 30 : 5) / 1000;
      line.finish();
    }
    const auto source = source_figure("bandwidth_kbit", kbit);
    const auto share = [kbit](std::optional<double> value, double bound) {
      return value ? std::optional{*value / kbit / bound * 100} : std::nullopt;
    };
    report.verdict({text("%g", kbit), text("%.2f", measured), text("%.3f", measured / kbit * 100),
                    or_dash("%.2f", iperf), or_dash("%.2f", share(iperf, kPayloadBound)),
                    or_dash("%.2f", source), or_dash("%.2f", share(source, kSourceBound))},
                   rate_is_right(kbit, measured));
  }
  const auto& late = counters.at("a_to_b").at("lateness_us");
  report.title(
      text("The emulator in the last row, offered 1.5 times the rate: %.0f %% of one core; packets "
           "left %.0f us late (p50), %.0f us (p99).",
           100 * counters.at("cpu_seconds").to_number<double>() / counters.at("seconds").to_number<double>(),
           late.at("p50").to_number<double>(), late.at("p99").to_number<double>()));
}

void delay(const Rig& rig, const CalibrateOptions& options, Report& report) {
  report.doing("the path's own round trip");
  double floor = 0;
  {
    const Switch plain{rig};
    floor = ping_mean_ms(rig, 200, "0.005");
  }
  report.title(text(
      "Delay. Mean of pings; half of the set RTT in each direction. The path's own round trip, over a kernel "
      "bridge: %.3f ms.\nGoal: within 0.3 ms of the set RTT plus the path's own.",
      floor));
  report.row({"set RTT ms", "measured ms", "error ms", "source ms", "its error ms", "goal"});
  for (const double rtt : {0., 2., 10., 40., 100., 200., 2000.}) {
    report.doing(text("%g ms", rtt));
    RunningLine line{rig, options.program, {"--delay", text("%gms", rtt / 2)}};
    const double measured = ping_mean_ms(rig, options.quick ? 100 : 1000, "0.01");
    line.finish();
    const auto source = source_figure("rtt_ms", rtt);
    report.verdict({text("%g", rtt), text("%.3f", measured), text("%+.3f", measured - rtt - floor),
                    or_dash("%.3f", source), source ? text("%+.3f", *source - rtt) : "-"},
                   delay_is_right(rtt, floor, measured));
  }
}

void loss(const Rig& rig, const CalibrateOptions& options, Report& report) {
  constexpr std::uint64_t kPackets = 10'000;
  report.title(text(
      "Loss. %llu datagrams one way, counted at the far end. Goal: inside the 99.9 %% binomial interval.",
      static_cast<unsigned long long>(kPackets)));
  report.row({"set %", "measured %", "lost", "interval", "source %", "goal"});
  for (const double percent : {0., 0.05, 0.1, 0.5, 1., 5.}) {
    report.doing(text("%g %% loss", percent));
    RunningLine line{rig, options.program, {"--loss", text("%g%%", percent)}};
    const Received received = send_and_count(
        rig, {.rate_bits = 10e6, .packet_bytes = 100, .packets = kPackets, .duration = 30s, .quiet = 300ms});
    line.finish();
    const std::uint64_t lost = received.sent - received.all_packets;
    const auto [low, high] = binomial_interval(received.sent, percent / 100, 0.999);
    report.verdict({text("%g", percent),
                    text("%.2f", 100. * static_cast<double>(lost) / static_cast<double>(received.sent)),
                    std::to_string(lost), std::to_string(low) + ".." + std::to_string(high),
                    or_dash("%.2f", source_figure("loss_percent", percent))},
                   loss_is_right(received.sent, lost, percent / 100));
  }
}

struct Path {
  double counted_kbit = 0;  // at the far end, under constant overload
  std::optional<double> iperf_kbit;
};

Path measure_path(const Rig& rig, const CalibrateOptions& options, double kbit) {
  Path path;
  const Received received = send_and_count(rig, {.rate_bits = kbit * 1500,
                                                 .packet_bytes = kPacketBytes,
                                                 .duration = options.quick ? 1s : 5s,
                                                 .settle = 100ms});
  path.counted_kbit = received.rate_bits(kPacketBytes) / 1000;
  if (!options.quick) path.iperf_kbit = iperf_mean_bits(rig, options.runs, 5) / 1000;
  return path;
}

void idle(const Rig& rig, const CalibrateOptions& options, Report& report) {
  report.title(
      "The lab itself (table 20): the path over a switch (here a kernel bridge) and over the idle emulator. "
      "Cards of\n"
      "10 and 100 Mbit/s are token buckets at both hosts, which count Ethernet's headers too. Goal, as "
      "counted\n"
      "at the far end: equal within 1 %, and within 0.3 ms.");
  report.row({"path", "switch", "emulator", "difference", "iperf3: switch", "emulator", "source: switch",
              "emulator", "goal"});
  for (const double kbit : {10'000., 100'000.}) {
    report.doing(text("the bare path at %g kbit/s", kbit));
    rig.limit_cards(text("%gkbit", kbit));
    Path bridged;
    {
      const Switch plain{rig};
      bridged = measure_path(rig, options, kbit);
    }
    report.doing(text("the idle emulator at %g kbit/s", kbit));
    RunningLine line{rig, options.program, {}};
    const Path emulated = measure_path(rig, options, kbit);
    line.finish();
    rig.limit_cards("");
    report.verdict(
        {text("%g kbit/s", kbit), text("%.2f", bridged.counted_kbit), text("%.2f", emulated.counted_kbit),
         text("%+.2f %%", (emulated.counted_kbit / bridged.counted_kbit - 1) * 100),
         or_dash("%.2f", bridged.iperf_kbit), or_dash("%.2f", emulated.iperf_kbit),
         or_dash("%.2f", source_figure("switch_kbit", kbit)),
         or_dash("%.2f", source_figure("emulator_kbit", kbit))},
        rate_is_right(bridged.counted_kbit, emulated.counted_kbit));
  }
  report.doing("round trips");
  const unsigned pings = options.quick ? 200 : 1000;
  double bridged = 0;
  {
    const Switch plain{rig};
    bridged = ping_mean_ms(rig, pings, "0.005");
  }
  RunningLine line{rig, options.program, {}};
  const double emulated = ping_mean_ms(rig, pings, "0.005");
  line.finish();
  report.verdict(
      {"RTT ms", text("%.3f", bridged), text("%.3f", emulated), text("%+.3f ms", emulated - bridged), "-",
       "-", or_dash("%.2f", source_figure("switch_rtt_ms", 0)),
       or_dash("%.2f", source_figure("emulator_rtt_ms", 0))},
      delay_is_right(0, bridged, emulated));
}

// Before minutes have passed. The package only suggests what nothing else of it needs.
void check_programs() {
  struct Needed {
    const char *program, *package;  // of Debian
  };
  for (const Needed& needed : {Needed{"ip", "iproute2"}, Needed{"tc", "iproute2"}, Needed{"ethtool", "ethtool"},
                               Needed{"ping", "iputils-ping"}, Needed{"iperf3", "iperf3"}}) {
    const char* const path = std::getenv("PATH");
    std::istringstream folders(path ? path : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    bool found = false;
    for (std::string folder; !found && std::getline(folders, folder, ':');)
      found = ::access((folder + "/" + needed.program).c_str(), X_OK) == 0;
    if (!found)
      throw std::runtime_error(std::string(needed.program) + " is not installed, and the calibration needs it (Debian: apt install " +
                               needed.package + ")");
  }
}

}  // namespace

bool calibrate(const CalibrateOptions& options, std::ostream& out) {
  check_programs();
  Report report{out};
  const Rig rig;
  idle(rig, options, report);
  bandwidth(rig, options, report);
  delay(rig, options, report);
  loss(rig, options, report);
  out << "\n"
      << (report.missed() == 0 ? "all goals met" : text("%u goals missed", report.missed())) << std::endl;
  return report.missed() == 0;
}

}  // namespace longhaul::wan
