// SPDX-License-Identifier: Apache-2.0
// A table of the settings, and what they mean at the rate and round-trip time that were asked about.
#include "tools/probe/host_command.h"

#include <boost/json.hpp>
#include <iostream>

#include "tools/probe/host.h"
#include "tools/probe/table.h"
#include "tools/wan/units.h"

namespace longhaul::probe {
namespace {

// Without a path, typical ones are shown.
constexpr double kUsualMs[] = {1, 10, 30, 100, 250};

boost::json::array rates_by_delay(const Windows& windows) {
  boost::json::array rates;
  for (const double ms : kUsualMs)
    rates.push_back(boost::json::object{
        {"rtt_ms", ms}, {"receive_bps", windows.receive * 8e3 / ms}, {"send_bps", windows.send * 8e3 / ms}});
  return rates;
}

void print_rates(const Windows& windows, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{{"round trip", "receives at most", "sends at most"}};
  for (const double ms : kUsualMs)
    rows.push_back(
        {fixed(ms, 0) + " ms", rate_text(windows.receive * 8e3 / ms), rate_text(windows.send * 8e3 / ms)});
  out << "\nthroughput of one connection with these windows (receive " << fixed(windows.receive, 0)
      << ", send " << fixed(windows.send, 0) << " bytes)\n\n";
  print_table(rows, out);
}

}  // namespace

HostCommand::HostCommand(CLI::App& app) {
  command_ = app.add_subcommand("host", "show the TCP settings of this host, and which of them limit a path");
  command_->add_option("--rtt", rtt_ms_, "round-trip time of the path in ms")->check(CLI::Range(0.01, 1e6));
  command_->add_option("--rate", rate_, "capacity of the path, e.g. 100mbit");
  command_->add_flag("--json", json_, "print one JSON object");
}

int HostCommand::run() const {
  if ((rtt_ms_ > 0) != !rate_.empty())
    throw CLI::ValidationError("host", "--rtt and --rate must be given together");
  Demand demand;
  if (!rate_.empty()) {
    const auto rate = wan::parse_rate(rate_);
    if (!rate) throw CLI::ValidationError("--rate", rate.error());
    if (*rate == 0) throw CLI::ValidationError("--rate", "an unlimited rate needs an unlimited window");
    demand = {static_cast<double>(*rate), rtt_ms_ / 1000};
  }
  const HostSettings settings = read_host_settings();
  const auto options = judge_options(settings);
  const Windows windows = windows_of(settings);
  const auto buffers = rate_.empty() ? std::vector<Finding>{} : judge_buffers(settings, demand);
  const bool right = all_right(options) && all_right(buffers);
  if (json_) {
    boost::json::object object{{"options", to_json(options)},
                               {"receive_window_bytes", windows.receive},
                               {"send_window_bytes", windows.send},
                               {"rates", rates_by_delay(windows)},
                               {"right", right}};
    if (const auto release = settings.find("kernel.osrelease"); release != settings.end())
      object["kernel"] = release->second;
    if (!rate_.empty())
      object["path"] = boost::json::object{{"rate_bps", demand.rate_bits},
                                           {"rtt_ms", rtt_ms_},
                                           {"window_needed_bytes", demand.window_bytes()},
                                           {"findings", to_json(buffers)}};
    std::cout << boost::json::serialize(object) << std::endl;
    return right ? 0 : 1;
  }
  if (const auto release = settings.find("kernel.osrelease"); release != settings.end())
    std::cout << "TCP on this host, Linux " << release->second << "\n\n";
  print(options, std::cout);
  if (rate_.empty()) {
    print_rates(windows, std::cout);
    return right ? 0 : 1;
  }
  std::cout << "\n"
            << rate_text(demand.rate_bits) << " at " << fixed(rtt_ms_, 1) << " ms needs a window of "
            << fixed(demand.window_bytes(), 0) << " bytes\n\n";
  print(buffers, std::cout);
  std::cout << (right ? "\nOK: nothing here limits the window\n" : "\nlimited: see above\n");
  return right ? 0 : 1;
}

}  // namespace longhaul::probe
