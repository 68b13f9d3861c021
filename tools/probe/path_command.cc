// SPDX-License-Identifier: Apache-2.0
// Words to settings, results to standard output, progress to standard error.
#include "tools/probe/path_command.h"

#include <algorithm>
#include <iostream>

#include "tools/probe/over_time.h"
#include "tools/probe/path_report.h"
#include "tools/probe/progress.h"
#include "tools/wan/units.h"

namespace longhaul::probe {

void add_family(CLI::App& command, std::string& family) {
  command.add_flag_callback(
      "-4", [&family] { family = "4"; }, "IPv4 only");
  command.add_flag_callback(
      "-6", [&family] { family = "6"; }, "IPv6 only");
}

Wanted family_of(const std::string& family) {
  return family == "4" ? Wanted::v4 : family == "6" ? Wanted::v6 : Wanted::any;
}

std::chrono::nanoseconds duration_of(const std::string& option, const std::string& text) {
  const auto parsed = wan::parse_duration(text);
  if (!parsed) throw CLI::ValidationError(option, parsed.error());
  return *parsed;
}

PathCommand::PathCommand(CLI::App& app) {
  command_ = app.add_subcommand(
      "path", "measure capacity, delay and loss of every link on the path to a host (root)");
  command_->add_option("host", options_.host, "name or address")->required();
  command_
      ->add_option("--by", by_, "kind of probe; auto: the first of udp, icmp and tcp that the host answers")
      ->check(CLI::IsMember({"auto", "udp", "icmp", "tcp"}))
      ->capture_default_str();
  command_->add_option("--port", options_.port, "port of the host (default: 33434 by UDP, 443 by TCP)");
  add_family(*command_, family_);
  command_->add_option("--max-hops", options_.most_hops, "maximum number of hops")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command_->add_option("--sizes", options_.sizes, "number of different probe sizes for each hop")
      ->check(CLI::Range(6, 400))
      ->capture_default_str();
  command_->add_option("--probes", options_.repeats, "number of probes of each size; the fastest is used")
      ->check(CLI::Range(2, 10'000))
      ->capture_default_str();
  command_
      ->add_option("--max-size", options_.most_bytes,
                   "bytes of the largest probe (default: the largest that fits the path)")
      ->check(CLI::Range(100, 65'535));
  command_->add_option("--wait", wait_, "time to wait for an answer; shorter once a hop's delay is known")
      ->capture_default_str();
  command_->add_option("--gap", gap_,
                       "time between two probes to one hop (default: none, or 1.05s for a hop that answers "
                       "at most once a second)");
  command_->add_flag("--symmetric", symmetric_,
                     "assume that links are equally fast in both directions: narrower confidence intervals");
  command_->add_option("--repeat", repeat_, "number of measurements; 0: until Ctrl-C")->capture_default_str();
  command_->add_option("--every", every_,
                       "time from the start of one measurement to the start of the next, e.g. 10s");
  command_->add_flag("--json", json_, "print one JSON object for each measurement, one per line");
}

int PathCommand::run() {
  if (by_ != "auto") options_.by = by_ == "udp" ? Kind::udp : by_ == "icmp" ? Kind::icmp : Kind::tcp;
  options_.family = family_of(family_);
  if (symmetric_) options_.assume = Assume::symmetric;
  using std::chrono::milliseconds;
  options_.wait = std::chrono::duration_cast<milliseconds>(duration_of("--wait", wait_));
  if (!gap_.empty()) options_.gap = std::chrono::duration_cast<milliseconds>(duration_of("--gap", gap_));
  const auto every = duration_of("--every", every_);

  Stop stop;
  measuring::stop_on_signals(stop);
  OverTime over_time;
  bool reached = false;
  constexpr auto kAfterFailure = std::chrono::seconds{1};  // at least: it may fail at once
  for (unsigned number = 0; (repeat_ == 0 || number < repeat_) && !stop.is_requested(); ++number) {
    const auto began = std::chrono::steady_clock::now();
    const std::string time = time_text();
    std::chrono::nanoseconds pause{0};
    options_.seed = number + 1;
    try {
      ProgressLine line;
      const Path path = probe_path(options_, stop, [&](const Progress& progress) { line.show(progress); });
      line.clear();
      show(path, time);
      reached = path.reached;
      over_time.add(path, time);
    } catch (const measuring::Trouble& trouble) {
      // What never went well is a mistake. What did is away for a while, which is a finding of its own.
      if (number == 0) throw;
      reached = false;
      show_failure(trouble.what(), time);
      over_time.add_failure(time);
      pause = kAfterFailure;
    }
    if (!stop.is_requested() && (repeat_ == 0 || number + 1 < repeat_))
      measuring::pause(std::max(pause, every - (std::chrono::steady_clock::now() - began)), stop);
  }
  if (!json_ && over_time.measurements() > 1) over_time.print(std::cout);
  if (stop.is_requested()) return kInterrupted;
  return reached ? 0 : 1;
}

void PathCommand::show(const Path& path, const std::string& time) const {
  if (json_) {
    boost::json::object object = to_json(path);
    object["time"] = time;
    std::cout << boost::json::serialize(object) << std::endl;
  } else if (path.hops.empty()) {
    std::cout << "interrupted before the first measurement" << std::endl;
  } else {
    if (repeat_ != 1) std::cout << time << "  ";
    print(path, std::cout);
    std::cout << std::endl;
  }
}

void PathCommand::show_failure(const std::string& sentence, const std::string& time) const {
  if (json_)
    std::cout << boost::json::serialize(boost::json::object{{"time", time}, {"trouble", sentence}})
              << std::endl;
  else
    std::cout << time << "  not measured: " << sentence << '\n' << std::endl;
}

}  // namespace longhaul::probe
