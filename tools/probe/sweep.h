// SPDX-License-Identifier: Apache-2.0
// The path probe: finds the hops, then sends many sizes to each, and turns the smallest times into links
// (pchar's method, see README). Leaves what a reader sees to path_report.h.
#pragma once
#include <functional>

#include "tools/probe/fit.h"
#include "tools/probe/prober.h"

namespace longhaul::probe {

struct PathOptions {
  std::string host;
  Wanted family = Wanted::any;
  std::optional<Kind> by;  // absent: the first of UDP, ICMP, TCP that the host answers
  std::uint16_t port = 0;  // 0: 33434 of UDP, 443 of TCP
  unsigned most_hops = 30;
  unsigned sizes = 24;      // for each hop
  unsigned repeats = 16;    // of each size
  unsigned most_bytes = 0;  // 0: what the path takes
  std::chrono::milliseconds wait{1000};
  std::optional<std::chrono::milliseconds>
      gap;  // between two probes to one hop; absent: as each hop's limit demands
  Assume assume = Assume::nothing;
  std::uint64_t seed = 1;  // of the order of sizes
};

struct Hop {
  unsigned limit = 0;               // hops from here
  std::optional<Endpoint> address;  // absent: silent
  bool is_end = false;
  bool rate_limited = false;  // answers at most about one probe a second
  unsigned sent = 0;          // in the sweep
  unsigned answered = 0;
  double least_us = 0;
  std::vector<Point> points;  // the minimum of each size
  std::optional<RoundTrip> fit;
};

struct Link {
  unsigned from = 0;  // hop, 0: this host
  unsigned to = 0;
  LinkFit fit;
  Share loss;  // there and back
};

struct Path {
  std::string host;
  Endpoint address{};
  Kind by = Kind::udp;
  unsigned mtu = 0;  // of the probes; what went through
  bool reached = false;
  bool interrupted = false;
  std::string remark;  // a sentence on what is odd, or nothing
  std::vector<Hop> hops;
  std::vector<Link> links;
};

struct Progress {
  const char* step = "";
  unsigned done = 0;
  unsigned all = 0;
  double seconds_left = 0;
};
using OnProgress = std::function<void(const Progress&)>;

Path probe_path(const PathOptions& options, const Stop& stop, const OnProgress& on_progress);

// From the hops' points; also for tests.
std::vector<Link> links_of(const std::vector<Hop>& hops);
const char* name_of(Kind kind);

}  // namespace longhaul::probe
