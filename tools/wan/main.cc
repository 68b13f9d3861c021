// SPDX-License-Identifier: Apache-2.0
// The command line of longhaul-wan. Leaves all work to the library beside it.
#include <sched.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "cli11.h"
#include "manuals/options.h"
#include "tools/wan/calibrate/calibrate.h"
#include "tools/wan/control.h"
#include "tools/wan/forwarder.h"
#include "tools/wan/trace.h"

namespace {

using namespace longhaul::wan;

struct RunOptions {
  std::string a;
  std::string b;
  std::string control;
  std::uint64_t seed = 1;
  std::string priority = "realtime";
  std::string schedule;
  std::map<std::string, std::string> settings;  // by name, prefix included
};

struct AskOptions {
  std::string control;
  double wait_seconds = 0;
  bool reset = false;
  std::vector<std::string> assignments;
};

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run =
      app.add_subcommand("run", "connect two interfaces by an emulated line until SIGINT or SIGTERM");
  run->add_option("--a", options.a, "interface at one end, or tap:NAME")->required();
  run->add_option("--b", options.b, "interface at the other end, or tap:NAME")->required();
  run->add_option("--control", options.control, "Unix socket for `set` and `stats`")->type_name("FILE");
  run->add_option("--seed", options.seed, "random seed; the same seed and packets give the same losses")
      ->capture_default_str();
  run->add_option("--schedule", options.schedule,
                  "file of timed changes: each line has a time and settings, e.g. 12.5s delay=90ms cut=off; "
                  "`repeat 60s` starts over")
      ->type_name("FILE");
  run->add_option("--priority", options.priority,
                  "realtime: priority over all ordinary processes, if permitted")
      ->check(CLI::IsMember({"realtime", "normal"}))
      ->capture_default_str();
  for (const std::string prefix : {"", "a-to-b-", "b-to-a-"})
    for (const SettingName& setting : kSettingNames) {
      const std::string name = prefix + std::string(setting.name);
      run->add_option("--" + name, options.settings[name], std::string(setting.help))
          ->group(prefix.empty() ? "Line" : "Line, one direction only");
    }
  return run;
}

CLI::App* add_ask(CLI::App& app, AskOptions& options, const std::string& name, const std::string& help) {
  CLI::App* ask = app.add_subcommand(name, help);
  ask->add_option("--control", options.control, "Unix socket of the running emulator")->required()->type_name("FILE");
  ask->add_option("--wait", options.wait_seconds, "seconds to wait for the socket to appear")
      ->check(CLI::Range(0., 60.));
  return ask;
}

constexpr int kLinePriority = 2;  // before what measures it

// Ordinary processes may keep the line waiting for their time slice, some milliseconds each; that would be
// measured as delay. The line itself runs for microseconds at a time. False where it is not permitted.
bool become_realtime(int priority) {
  sched_param parameter{};
  parameter.sched_priority = priority;
  return ::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameter) == 0;
}

Schedule read_schedule(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw CLI::ValidationError("--schedule", "cannot read " + path);
  auto schedule = parse_schedule(text.str());
  if (!schedule) throw CLI::ValidationError("--schedule", path + ": " + schedule.error());
  return *std::move(schedule);
}

void run_line(const RunOptions& options) {
  if (options.a == options.b) throw CLI::ValidationError("--b", "a line needs two different interfaces");
  LineSettings settings;
  settings.seed = options.seed;
  for (const bool one_direction : {false, true})  // the narrower option wins
    for (const auto& [name, value] : options.settings) {
      if (value.empty() || (name.find("-to-") != std::string::npos) != one_direction) continue;
      if (const auto error = apply(settings, name, value)) throw CLI::ValidationError("--" + name, *error);
    }
  sigset_t ends;  // blocked before anything is set up, so that the end is always the clean one
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  std::optional<Schedule> schedule;
  if (!options.schedule.empty()) schedule = read_schedule(options.schedule);
  Forwarder forwarder{open_port(options.a), open_port(options.b), settings};
  if (schedule) forwarder.play(*std::move(schedule));
  std::optional<ControlServer> control;
  if (!options.control.empty()) control.emplace(options.control);
  const bool realtime = options.priority == "realtime" && become_realtime(kLinePriority);
  std::cerr << "longhaul-wan: line between " << options.a << " and " << options.b << " is up, "
            << (realtime ? "real-time" : "normal") << " priority" << std::endl;
  try {
    forwarder.run(control ? &*control : nullptr);
  } catch (...) {
    std::cout << boost::json::serialize(forwarder.stats()) << std::endl;
    throw;
  }
  std::cout << boost::json::serialize(forwarder.stats()) << std::endl;
}

void ask_line(const AskOptions& options, std::string command) {
  for (const std::string& assignment : options.assignments) command += " " + assignment;
  const std::string answer =
      ask(options.control, command, std::chrono::milliseconds{static_cast<int>(options.wait_seconds * 1000)});
  const auto json = boost::json::parse(answer);
  if (const auto* error = json.as_object().if_contains("error"))
    throw std::runtime_error(std::string(error->as_string()));
  std::cout << answer << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"A WAN in user space: rate, delay, loss and queue between two interfaces."};
  app.require_subcommand(1);
  RunOptions run_options;
  AskOptions set_options;
  AskOptions stats_options;
  const CLI::App* run = add_run(app, run_options);
  CLI::App* set =
      add_ask(app, set_options, "set", "change the settings of a running line, all of them or none");
  set->add_option("assignments", set_options.assignments,
                  "NAME=VALUE, names as in `run`, e.g. rate=10mbit loss=1%")
      ->required();
  AskOptions lose_options;
  CLI::App* lose = add_ask(app, lose_options, "lose", "drop the next packets of one or both directions");
  lose->add_option("assignments", lose_options.assignments, "a-to-b=PACKETS b-to-a=PACKETS, either or both")
      ->required();
  CLI::App* stats = add_ask(app, stats_options, "stats", "print a running line's counters as JSON");
  stats->add_flag("--reset", stats_options.reset, "reset them to zero");
  CalibrateOptions calibrate_options;
  CLI::App* calibration = app.add_subcommand(
      "calibrate", "measure the emulator between two network namespaces; exit code 1 if a goal is missed");
  calibration->add_flag("--quick", calibrate_options.quick, "take less than a minute");
  calibration->add_option("--runs", calibrate_options.runs, "iperf3 runs for each rate; the mean is printed")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  TraceOptions trace_options;
  double trace_seconds = 60;
  CLI::App* trace = app.add_subcommand("trace", "print a schedule for a line that changes like a radio link");
  std::string kinds = "one of";
  for (const TraceKind& kind : kTraceKinds) kinds += " " + std::string(kind.name);
  trace->add_option("kind", trace_options.kind, kinds)->required();
  trace->add_option("--seed", trace_options.seed, "random seed; the same seed gives the same trace")
      ->capture_default_str();
  trace->add_option("--seconds", trace_seconds, "length of the trace, which then repeats")
      ->capture_default_str();
  longhaul::manuals::add_options(app, "longhaul-wan");
  try {
    app.parse(argc, argv);
    if (*run) run_line(run_options);
    if (*calibration) {
      become_realtime(kLinePriority - 1);  // it measures the line, not how busy the host is
      return calibrate(calibrate_options, std::cout) ? 0 : 1;
    }
    if (*trace) {
      // Not a number is less than anything.
      const double seconds = trace_seconds > 0 ? std::min(trace_seconds, 1e6) : 0;
      trace_options.length = Duration{static_cast<Duration::rep>(seconds * 1e9)};
      const auto made = make_trace(trace_options);
      if (!made) throw CLI::ValidationError("trace", made.error());
      std::cout << made->text;
    }
    if (*set) ask_line(set_options, "set");
    if (*lose) ask_line(lose_options, "lose");
    if (*stats) ask_line(stats_options, stats_options.reset ? "stats reset" : "stats");
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "longhaul-wan: " << error.what() << std::endl;
    return 1;
  }
}
