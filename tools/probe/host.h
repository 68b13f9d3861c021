// SPDX-License-Identifier: Apache-2.0
// What of a host's TCP settings limits a connection at a rate and a round-trip time: the window needed, what
// the kernel would allow, and the setting that gives it. Judging is pure; read_host_settings looks at
// /proc/sys.
#pragma once
#include <array>
#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace longhaul::probe {

// By sysctl name, as the kernel writes them; a name that this kernel or namespace does not have is absent.
using HostSettings = std::map<std::string, std::string>;
HostSettings read_host_settings();

enum class Verdict { right, change, note };

struct Finding {
  std::string setting;  // sysctl name
  std::string now;
  std::string needed;
  Verdict verdict = Verdict::right;
  std::string why;      // a sentence; of `right` too
  std::string command;  // what a person types to mend it; empty where nothing is to be mended
};

// TCP's side of the host, whatever the path (the table of source options of RFC 7323 and RFC 2018, and more).
std::vector<Finding> judge_options(const HostSettings& settings);

struct Demand {
  double rate_bits = 0;  // of IP bytes
  double rtt_seconds = 0;
  double window_bytes() const { return rate_bits * rtt_seconds / 8; }
};
// What one connection needs in both directions.
std::vector<Finding> judge_buffers(const HostSettings& settings, const Demand& demand);

// The most one connection's window can be with these settings, in bytes.
struct Windows {
  double receive = 0;
  double send = 0;
};
Windows windows_of(const HostSettings& settings);

boost::json::array to_json(const std::vector<Finding>& findings);
void print(const std::vector<Finding>& findings, std::ostream& out);
bool all_right(const std::vector<Finding>& findings);

}  // namespace longhaul::probe
