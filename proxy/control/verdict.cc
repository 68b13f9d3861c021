// SPDX-License-Identifier: Apache-2.0
// Examines one snapshot: without history, a problem leaves the verdict as soon as its cause is gone.
#include "proxy/control/verdict.h"

#include <algorithm>
#include <boost/json/array.hpp>

namespace longhaul::control {
namespace {

namespace json = boost::json;

std::string of_peer(const link::LinkStatus& link) { return "\"" + link.peer + "\""; }

std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

std::uint64_t files_not_reported(const Status& status) {
  std::uint64_t waiting = 0;
  for (const modules::Listed& module : status.modules)
    if (const auto* losses = module.instance->losses()) waiting += losses->counts().waiting;
  return waiting;
}

// A path is measured for some round trips before it is used.
constexpr std::chrono::seconds kTrial{3};

void look_at_paths(const link::LinkStatus& link, std::vector<Problem>& found) {
  for (const link::PathStatus& path : link.paths) {
    if (path.role != link::PathRole::none) continue;
    if (path.udp.state == link::UdpState::probing && link.state_age < kTrial) continue;
    found.push_back({"The path \"" + path.name + "\" to " + of_peer(link) + " does not work.",
                     "check this line, and that its firewalls allow UDP on the link's port; it is probed "
                     "again automatically"});
  }
}

void look_at_link(const link::LinkStatus& link, std::vector<Problem>& found) {
  switch (link.state) {
    case link::LinkState::never_up:
      found.push_back({"The link to " + of_peer(link) + " has not come up since this daemon started" +
                           in_brackets(link.last_error) + ".",
                       "see the log (link_failed); check address, port, firewall and fingerprint", true});
      break;
    case link::LinkState::down:
      found.push_back({"The link to " + of_peer(link) + " is down" + in_brackets(link.last_error) + ".",
                       "check that the peer's daemon runs and is reachable; the link reconnects by itself",
                       true});
      break;
    case link::LinkState::silent:
      found.push_back({"The peer " + of_peer(link) + " stopped answering.",
                       "check the WAN between the sites; new flows use the link again when the peer answers",
                       true});
      break;
    case link::LinkState::up:
      if (link.udp.drops_bursts)
        found.push_back({"The path to " + of_peer(link) + " drops bursts of UDP packets, so they are sent one by one.",
                         "look for a virtual interface or an emulator with a short queue on the path; try "
                         "ethtool -K INTERFACE tx-udp-segmentation off"});
      if (link.udp.state == link::UdpState::failed || link.udp.unanswered)
        found.push_back(
            {"The peer " + of_peer(link) +
                 " does not answer over UDP, so TCP carries the link, which is slow on lossy lines.",
             "allow UDP on the link's port in the firewalls between the sites"});
      else
        look_at_paths(link, found);
      break;
  }
}

void look_at_kernel(const Status& status, std::vector<Problem>& found) {
  if (status.fail_closed == FailClosed::missing)
    found.push_back(
        {"The packet rules of fail = \"closed\" are missing" + in_brackets(status.fail_closed_error) + ".",
         "traffic may leave unencrypted; see the log (fail_closed_missing)", true});
  if (status.fail_closed == FailClosed::lifted)
    found.push_back({"The packet rules of fail = \"closed\" were removed by command.",
                     "install them again with longhaul fail-closed install FILE", true});
  if (status.intercept == InterceptState::down)
    found.push_back({"Interception is down, so new connections bypass this proxy" +
                         in_brackets(status.intercept_error) + ".",
                     "run longhaul intercept up", true});
}

void look_at_memory(const Status& status, std::vector<Problem>& found) {
  if (status.memory_short)
    found.push_back(
        {"The memory limit is reached: new flows bypass the link.", "raise [limits] memory", true});
  else if (status.module_memory_short)
    found.push_back({"Application modules have no memory left: new flows are not accelerated by protocol.",
                     "raise [limits] memory"});
  if (status.disk && !status.disk->ready)
    found.push_back({"The dictionary on disk is not in use yet.",
                     "wait until its directory has been read; if this persists, see the log (dictionary)"});
}

void look_at_exports(const Status& status, std::vector<Problem>& found) {
  if (const auto& flows = status.flow_export; flows && !flows->last_error.empty())
    found.push_back({"Flow records do not reach the IPFIX collector" + in_brackets(flows->last_error) + ".",
                     "check [export] ipfix and the collector"});
  if (const auto& metrics = status.metric_export; metrics && !metrics->last_error.empty())
    found.push_back({"Metrics do not reach the OpenTelemetry collector" + in_brackets(metrics->last_error) + ".",
                     "check [export] otlp and the collector"});
  if (status.syslog && status.syslog->fails)
    found.push_back({"Log lines do not reach syslog.", "check [log] syslog; the log (syslog) names the reason"});
}

}  // namespace

std::vector<Problem> problems(const Status& status, const config::Features& features) {
  std::vector<Problem> found;
  if (const auto waiting = files_not_reported(status); waiting > 0)
    found.push_back({"Writes that were acknowledged early have been lost in " + std::to_string(waiting) +
                         " files, and their clients have not been notified yet.",
                     "see the log (promise_lost) for the files", true});
  look_at_kernel(status, found);
  for (const auto& link : status.links) look_at_link(link, found);
  if (features.transport == config::Transport::off)
    found.push_back(
        {"transport = off is in force, so no flow uses a link.", "run longhaul set transport=auto", true});
  if (status.logs_keys)
    found.push_back({"The keys of all connections with peers are written to a file ([link] key_log).",
                     "remove key_log from the configuration and restart; then remove the file from state_dir", true});
  look_at_memory(status, found);
  look_at_exports(status, found);
  std::ranges::stable_partition(found, &Problem::is_serious);
  return found;
}

json::object view_verdict(const Status& status, const config::Features& features,
                          const flows::FlowBytes& bytes) {
  json::array list;
  for (const Problem& problem : problems(status, features))
    list.push_back(json::object{
        {"sentence", problem.sentence}, {"remedy", problem.remedy}, {"serious", problem.is_serious}});
  const auto lan = bytes.lan_in + bytes.lan_out, wan = bytes.wan_in + bytes.wan_out;
  const auto saved = static_cast<double>(lan) - static_cast<double>(wan);
  return {{"ok", list.empty()},
          {"problems", std::move(list)},
          {"saved_bytes", static_cast<std::int64_t>(saved)},
          {"saved_share", lan == 0 ? json::value() : json::value(saved / static_cast<double>(lan))}};
}

}  // namespace longhaul::control
