// SPDX-License-Identifier: Apache-2.0
// The rules of Linux's TCP buffers, each beside the figure it explains.
#include "tools/probe/host.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "tools/probe/table.h"

namespace longhaul::probe {
namespace {

constexpr const char* kNames[] = {"net.ipv4.tcp_window_scaling",
                                  "net.ipv4.tcp_sack",
                                  "net.ipv4.tcp_timestamps",
                                  "net.ipv4.tcp_rmem",
                                  "net.ipv4.tcp_wmem",
                                  "net.ipv4.tcp_moderate_rcvbuf",
                                  "net.ipv4.tcp_adv_win_scale",
                                  "net.ipv4.tcp_no_metrics_save",
                                  "net.ipv4.tcp_slow_start_after_idle",
                                  "net.ipv4.tcp_congestion_control",
                                  "net.ipv4.tcp_available_congestion_control",
                                  "net.ipv4.tcp_mtu_probing",
                                  "net.ipv4.tcp_dsack",
                                  "net.ipv4.tcp_mem",
                                  "net.core.rmem_max",
                                  "net.core.wmem_max",
                                  "net.core.default_qdisc",
                                  "kernel.osrelease"};

constexpr double kUnscaledWindow = 65'535;        // without RFC 7323
constexpr double kLargestWindow = 1'073'725'440;  // 65535 << 14
constexpr std::uint64_t kLargestBuffer = 2'147'483'647;

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::istringstream words(text);
  std::uint64_t number = 0;
  if (!(words >> number)) return std::nullopt;
  return number;
}

std::optional<std::string> text_of(const HostSettings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint64_t> number_of(const HostSettings& settings, const std::string& name) {
  const auto text = text_of(settings, name);
  return text ? number_in(*text) : std::nullopt;
}

using Triple = std::array<std::uint64_t, 3>;  // least, first, most
std::optional<Triple> triple_of(const HostSettings& settings, const std::string& name) {
  const auto text = text_of(settings, name);
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  Triple values{};
  if (!(words >> values[0] >> values[1] >> values[2])) return std::nullopt;
  return values;
}

// The part of a receive buffer that is offered as window: positive n leaves out 1/2^n, otherwise 1/2^-n is
// offered (ip-sysctl). Since Linux 6.6 it is learned from the packets and starts at a half: never count on
// more than that.
double window_share(const HostSettings& settings) {
  const auto text = text_of(settings, "net.ipv4.tcp_adv_win_scale");
  const int scale = text ? std::atoi(text->c_str()) : 1;
  const double share = scale > 0 ? 1 - std::ldexp(1.0, -scale) : std::ldexp(1.0, scale);
  return std::min(share, 0.5);
}

// A send buffer counts the memory of packets, which is about twice their bytes (as Linux itself reckons when
// it grows it).
constexpr double kSendShare = 0.5;

std::string bytes_text(double bytes) { return std::to_string(static_cast<std::uint64_t>(std::ceil(bytes))); }

// Whole 64 KiB, so that figures are easy to compare.
std::uint64_t buffer_for(double window, double share) {
  const double unit = 65'536;
  return std::min(kLargestBuffer, static_cast<std::uint64_t>(std::ceil(window / share / unit) * unit));
}

Finding on_or_off(const HostSettings& settings, const std::string& name, bool wanted, const std::string& good,
                  const std::string& bad) {
  Finding finding{.setting = name, .needed = wanted ? "1" : "0"};
  const auto value = number_of(settings, name);
  if (!value) {
    finding.now = "unknown";
    finding.verdict = Verdict::note;
    finding.why = "not visible in this kernel or namespace";
    return finding;
  }
  finding.now = std::to_string(*value);
  const bool right = (*value != 0) == wanted;
  if (right && wanted) finding.needed = finding.now;  // other values than 1 may mean on as well
  finding.verdict = right ? Verdict::right : Verdict::change;
  finding.why = right ? good : bad;
  if (!right) finding.command = "sysctl -w " + name + "=" + finding.needed;
  return finding;
}

Finding judge_triple(const HostSettings& settings, const std::string& name, double window, double share,
                     const std::string& what) {
  Finding finding{.setting = name};
  const auto values = triple_of(settings, name);
  if (!values) {
    finding.now = "unknown";
    finding.verdict = Verdict::note;
    finding.why = "not visible in this kernel or namespace";
    return finding;
  }
  const auto [least, first, most] = *values;
  finding.now = std::to_string(least) + " " + std::to_string(first) + " " + std::to_string(most);
  const std::uint64_t needed = buffer_for(window, share);
  if (most >= needed) {
    finding.needed = finding.now;
    finding.why = "a " + what + " window of " + bytes_text(static_cast<double>(most) * share) +
                  " bytes fits, " + bytes_text(window) + " are needed";
    return finding;
  }
  finding.needed = std::to_string(least) + " " + std::to_string(first) + " " + std::to_string(needed);
  finding.verdict = Verdict::change;
  finding.why = "its last value limits the " + what + " window to " +
                bytes_text(static_cast<double>(most) * share) + " bytes, " + bytes_text(window) +
                " are needed";
  finding.command = "sysctl -w " + name + "='" + finding.needed + "'";
  return finding;
}

// These bound only what a program asks for itself (SO_RCVBUF, SO_SNDBUF); the kernel's own tuning goes past
// them.
Finding judge_core(const HostSettings& settings, const std::string& name, double window, double share) {
  const std::uint64_t needed = buffer_for(window, share) / 2;  // the kernel doubles what is asked for
  Finding finding{.setting = name, .needed = std::to_string(needed)};
  const auto value = number_of(settings, name);
  finding.verdict = Verdict::note;
  if (!value) {
    finding.now = "unknown";
    finding.why = "not visible in this namespace; applies only to programs that set their buffer sizes";
    return finding;
  }
  finding.now = std::to_string(*value);
  if (*value >= needed) {
    finding.needed = finding.now;
    finding.verdict = Verdict::right;
    finding.why = "enough for programs that set their buffer sizes";
    return finding;
  }
  finding.why = "too small for programs that set their buffer sizes; others are not affected";
  finding.command = "sysctl -w " + name + "=" + std::to_string(needed);
  return finding;
}

}  // namespace

HostSettings read_host_settings() {
  HostSettings settings;
  for (const std::string name : kNames) {
    std::string path = name;
    std::replace(path.begin(), path.end(), '.', '/');
    std::ifstream file("/proc/sys/" + path);
    std::string value;
    if (!std::getline(file, value)) continue;
    std::replace(value.begin(), value.end(), '\t', ' ');
    settings[name] = value;
  }
  return settings;
}

std::vector<Finding> judge_options(const HostSettings& settings) {
  std::vector<Finding> findings;
  findings.push_back(on_or_off(settings, "net.ipv4.tcp_window_scaling", true,
                               "windows larger than 65535 bytes are possible (RFC 7323)",
                               "no window is larger than 65535 bytes (RFC 7323)"));
  findings.push_back(on_or_off(settings, "net.ipv4.tcp_sack", true,
                               "several losses are repaired in one round trip (RFC 2018)",
                               "only one of several losses is repaired each round trip (RFC 2018)"));
  findings.push_back(
      on_or_off(settings, "net.ipv4.tcp_timestamps", true,
                "round trips are measured, and old segments are distinguished from new ones (RFC 7323)",
                "wrapped sequence numbers are not detected on fast paths, and few round trips are measured "
                "(RFC 7323)"));
  findings.push_back(on_or_off(settings, "net.ipv4.tcp_moderate_rcvbuf", true,
                               "the receive window grows automatically",
                               "the receive window keeps its initial size (the middle value of tcp_rmem)"));
  Finding metrics = on_or_off(
      settings, "net.ipv4.tcp_no_metrics_save", true,
      "connections do not start with the slow-start threshold of earlier ones",
      "affects measurements: a connection starts with cached metrics of earlier ones to the same host");
  if (metrics.verdict == Verdict::change) metrics.verdict = Verdict::note;
  findings.push_back(metrics);
  Finding idle = on_or_off(settings, "net.ipv4.tcp_slow_start_after_idle", false,
                           "idle periods do not reduce the congestion window",
                           "after a short idle period, a connection goes back to slow start");
  if (idle.verdict == Verdict::change) idle.verdict = Verdict::note;
  findings.push_back(idle);
  for (const std::string name : {"net.ipv4.tcp_congestion_control", "net.core.default_qdisc"})
    if (const auto value = text_of(settings, name)) {
      Finding finding{.setting = name, .now = *value, .needed = *value, .verdict = Verdict::note};
      finding.why =
          name == "net.core.default_qdisc"
              ? "the default for new interfaces"
              : "available: " + text_of(settings, "net.ipv4.tcp_available_congestion_control").value_or("?");
      findings.push_back(finding);
    }
  return findings;
}

std::vector<Finding> judge_buffers(const HostSettings& settings, const Demand& demand) {
  const double window = demand.window_bytes();
  std::vector<Finding> findings;
  if (window > kUnscaledWindow)
    findings.push_back(
        on_or_off(settings, "net.ipv4.tcp_window_scaling", true,
                  "the window of " + bytes_text(window) + " bytes can be advertised",
                  "without it, windows are limited to 65535 bytes; " + bytes_text(window) + " are needed"));
  findings.push_back(judge_triple(settings, "net.ipv4.tcp_rmem", window, window_share(settings), "receive"));
  findings.push_back(judge_triple(settings, "net.ipv4.tcp_wmem", window, kSendShare, "send"));
  findings.push_back(on_or_off(settings, "net.ipv4.tcp_moderate_rcvbuf", true,
                               "the receive window grows automatically to its limit",
                               "the receive window keeps its initial size"));
  findings.push_back(judge_core(settings, "net.core.rmem_max", window, window_share(settings)));
  findings.push_back(judge_core(settings, "net.core.wmem_max", window, kSendShare));
  if (window > kLargestWindow)
    findings.push_back({.setting = "(TCP itself)",
                        .now = bytes_text(kLargestWindow),
                        .needed = bytes_text(window),
                        .verdict = Verdict::note,
                        .why = "TCP allows no larger window: use several connections in parallel"});
  return findings;
}

Windows windows_of(const HostSettings& settings) {
  Windows windows{kLargestWindow, kLargestWindow};
  if (const auto values = triple_of(settings, "net.ipv4.tcp_rmem")) {
    const bool grows = number_of(settings, "net.ipv4.tcp_moderate_rcvbuf").value_or(1) != 0;
    windows.receive = static_cast<double>((*values)[grows ? 2 : 1]) * window_share(settings);
  }
  if (const auto values = triple_of(settings, "net.ipv4.tcp_wmem"))
    windows.send = static_cast<double>((*values)[2]) * kSendShare;
  const double bound =
      number_of(settings, "net.ipv4.tcp_window_scaling").value_or(1) != 0 ? kLargestWindow : kUnscaledWindow;
  return {std::min(windows.receive, bound), std::min(windows.send, bound)};
}

bool all_right(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.verdict == Verdict::change; });
}

boost::json::array to_json(const std::vector<Finding>& findings) {
  boost::json::array array;
  for (const Finding& finding : findings) {
    boost::json::object item{
        {"setting", finding.setting}, {"now", finding.now}, {"needed", finding.needed}, {"why", finding.why}};
    item["verdict"] = finding.verdict == Verdict::right    ? "right"
                      : finding.verdict == Verdict::change ? "change"
                                                           : "note";
    item["command"] =
        finding.command.empty() ? boost::json::value(nullptr) : boost::json::value(finding.command);
    array.push_back(item);
  }
  return array;
}

void print(const std::vector<Finding>& findings, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{{"setting", "now", "", "meaning"}};
  for (const Finding& finding : findings)
    rows.push_back({finding.setting, finding.now,
                    finding.verdict == Verdict::right    ? "right"
                    : finding.verdict == Verdict::change ? "CHANGE"
                                                         : "",
                    finding.why});
  print_table(rows, out);
  for (const Verdict verdict : {Verdict::change, Verdict::note}) {
    bool first = true;
    for (const Finding& finding : findings) {
      if (finding.verdict != verdict || finding.command.empty()) continue;
      if (first) out << (verdict == Verdict::change ? "\nchange:\n" : "\nperhaps:\n");
      first = false;
      out << "  " << finding.command << '\n';
    }
  }
}

}  // namespace longhaul::probe
