// SPDX-License-Identifier: Apache-2.0
// The probe's own SYN first; then, where an agent is named, what it says of this host's.
#include "tools/probe/options_command.h"

#include <iostream>

#include "tools/probe/far_end.h"
#include "tools/probe/path_command.h"

namespace longhaul::probe {
namespace {

void add_agent(OptionsReport& report, const FarOptions& far) {
  report.far_settings = far.settings;
  if (far.syn) {
    report.seen_at = far.port;
    Station station{report.stations.back().hop + 1, report.address, true, far.syn->options, far.syn->cut};
    // What this host's kernel does not offer cannot arrive, which is no one's fault on the way.
    const HostSettings ours = read_host_settings();
    const auto off = [&](const char* name) { return ours.contains(name) && ours.at(name) == "0"; };
    const TcpOptions& sent = report.stations.front().options;
    if (off("net.ipv4.tcp_window_scaling")) station.options.window_scale = sent.window_scale;
    if (off("net.ipv4.tcp_sack")) station.options.sack_permitted = sent.sack_permitted;
    if (off("net.ipv4.tcp_timestamps")) station.options.timestamps = sent.timestamps;
    report.stations.push_back(station);
  }
  report.changes = changes_between(report.stations);
  const auto of_the_host = [](const std::string& remark) { return remark.starts_with("this host's own"); };
  std::vector<std::string> remarks = judge_answer(report);
  std::copy_if(report.remarks.begin(), report.remarks.end(), std::back_inserter(remarks), of_the_host);
  report.remarks = std::move(remarks);
}

}  // namespace

OptionsCommand::OptionsCommand(CLI::App& app) {
  command_ = app.add_subcommand("options", "find TCP options that are removed or changed on the path (root)");
  command_->add_option("host", request_.host, "name or address")->required();
  command_->add_option("port", request_.port, "an open TCP port of the host")
      ->required()
      ->check(CLI::Range(1, 65535));
  command_->add_option("--agent", agent_,
                       "a `longhaul-probe agent` on that host, [HOST]:PORT, which reports what arrives");
  command_->add_option("--token-file", token_file_, "the agent's token file")->type_name("FILE");
  add_family(*command_, family_);
  command_->add_option("--max-hops", request_.most_hops, "maximum number of hops")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command_->add_option("--wait", wait_, "time to wait for an answer")->capture_default_str();
  command_->add_flag("--json", json_, "print one JSON object");
}

int OptionsCommand::run() {
  request_.family = family_of(family_);
  request_.wait = std::chrono::duration_cast<std::chrono::milliseconds>(duration_of("--wait", wait_));
  OptionsReport report;
  {
    Stop stop;
    measuring::stop_on_signals(stop);
    report = probe_options(request_, stop);
  }
  if (report.interrupted) {
    std::cerr << "longhaul-probe: interrupted" << std::endl;
    return kInterrupted;
  }
  if (!agent_.empty()) add_agent(report, ask_far_options(agent_, report.address, token_of(token_file_)));
  if (json_)
    std::cout << boost::json::serialize(to_json(report)) << std::endl;
  else
    print(report, std::cout);
  const bool all_arrives =
      report.answered && !report.refused && report.changes.empty() && report.remarks.empty();
  return all_arrives ? 0 : 1;
}

}  // namespace longhaul::probe
