// SPDX-License-Identifier: Apache-2.0
// Small probes with growing hop limits, a few tries each.
#include "tools/probe/discover.h"

#include <algorithm>

#include "tools/probe/patience.h"

namespace longhaul::probe {
namespace {

using std::chrono::milliseconds;

// At once, to see whether a hop answers all of them: Linux answers six and then one a second. That so many
// are lost by chance takes a loss that no measurement would survive.
constexpr unsigned kBurst = 16;
constexpr unsigned kBurstOfLimited = 8;

bool is_the_host(const Outcome& outcome, const Path& path) {
  return outcome.fate == Fate::answered && outcome.answer.what == What::reached &&
         bytes_of(outcome.from) == bytes_of(path.address);
}

Outcome patiently(Prober& prober, unsigned hop_limit, unsigned bytes, milliseconds wait) {
  Outcome outcome;
  for (unsigned attempt = 0; attempt < kTries && outcome.fate == Fate::silent; ++attempt)
    outcome = prober.probe(hop_limit, bytes, wait);
  return outcome;
}

class Discovery {
 public:
  Discovery(const PathOptions& options, const Stop& stop, Path& path, const OnProgress& on_progress)
      : options_(options), stop_(stop), path_(path), on_progress_(on_progress) {}

  std::unique_ptr<Prober> run() {
    auto prober = choose();
    if (!path_.interrupted) find_hops(*prober);
    if (!path_.interrupted) judge(*prober);
    if (!path_.interrupted) find_size(*prober);
    if (!path_.interrupted && !options_.gap) find_limits(*prober);
    return prober;
  }

 private:
  std::unique_ptr<Prober> open(Kind kind) {
    return std::make_unique<Prober>(path_.address, kind, options_.port, stop_);
  }

  bool ended(const Outcome& outcome) {
    if (outcome.fate == Fate::interrupted) path_.interrupted = true;
    return path_.interrupted;
  }

  std::unique_ptr<Prober> choose() {
    std::vector<Kind> kinds{Kind::udp, Kind::icmp, Kind::tcp};
    if (options_.by) kinds = {*options_.by};
    unsigned tried = 0;
    for (const Kind kind : kinds) {
      on_progress_(
          {"searching for a kind of probe that is answered", tried++, static_cast<unsigned>(kinds.size())});
      auto prober = open(kind);
      path_.by = kind;
      const Outcome outcome = patiently(*prober, kFarAway, prober->least_bytes(), options_.wait);
      if (ended(outcome)) return prober;
      path_.reached = is_the_host(outcome, path_);
      if (path_.reached) return prober;
    }
    path_.by = kinds.front();  // none: at least the hops on the way
    return open(path_.by);
  }

  void find_hops(Prober& prober) {
    unsigned silent = 0;
    for (unsigned limit = 1; limit <= options_.most_hops; ++limit) {
      on_progress_({"searching for hops", limit, options_.most_hops});
      const Outcome outcome = patiently(prober, limit, prober.least_bytes(), options_.wait);
      if (ended(outcome)) return;
      Hop hop{.limit = limit};
      if (outcome.fate == Fate::answered) {
        hop.address = outcome.from;
        hop.is_end = is_the_host(outcome, path_);
        if (outcome.answer.what == What::prohibited || outcome.answer.what == What::unreachable) {
          path_.remark =
              text_of(outcome.from) + " (hop " + std::to_string(limit) + ") reports that " +
              (outcome.answer.what == What::prohibited ? "a firewall prohibits these probes"
                                                       : "it has no route to " + text_of(path_.address));
          if (!path_.hops.empty() && path_.hops.back().address &&
              bytes_of(*path_.hops.back().address) == bytes_of(outcome.from))
            return;  // the same router as before: it is not one more hop
        }
      }
      silent = hop.address ? 0 : silent + 1;
      path_.hops.push_back(hop);
      if (hop.is_end || !path_.remark.empty()) return;
      if (silent >= kSilentHops && !path_.reached) return;
    }
  }

  // What was found, in words; and no hops behind the last that answered.
  void judge(Prober&) {
    while (!path_.hops.empty() && !path_.hops.back().address) path_.hops.pop_back();
    const std::string tried = options_.by ? name_of(*options_.by) : "UDP, ICMP and TCP";
    const std::string advice =
        options_.by ? "; try another kind with --by, or --by tcp and the --port of an open port there"
                    : "; try --by tcp and the --port of an open port there";
    if (path_.hops.empty())
      throw Trouble("no answers from the path to " + text_of(path_.address) + ", by " + tried +
                    ": the host is down, or a firewall drops the probes or the answers" + advice);
    if (path_.reached || !path_.remark.empty()) return;
    const Hop& last = path_.hops.back();
    if (last.is_end) return;
    path_.remark = text_of(path_.address) + " does not answer (" + tried +
                   "); the last hop that answers is " + text_of(*last.address) + ", hop " +
                   std::to_string(last.limit) + ": a firewall after it drops probes, or the host is down" +
                   advice;
  }

  // The largest that the last hop gets. Where the answer that it is too big is filtered, usual sizes are
  // tried.
  void find_size(Prober& prober) {
    const unsigned limit = path_.hops.back().limit;
    unsigned bytes = prober.interface_mtu();
    if (options_.most_bytes != 0) bytes = std::min(bytes, options_.most_bytes);
    bytes = std::max(bytes, prober.least_bytes());
    const unsigned usual[] = {
        1500, 1492, 1480, 1460, 1420, 1400, 1360, 1280, 1006, 576, prober.least_bytes()};
    while (true) {
      on_progress_({"searching for the largest size", 0, 0});
      const Outcome outcome = patiently(prober, limit, bytes, options_.wait);
      if (ended(outcome)) return;
      path_.mtu = bytes;
      if (outcome.fate == Fate::answered && outcome.answer.what != What::too_big) return;
      unsigned smaller =
          outcome.fate == Fate::answered && outcome.answer.mtu < bytes ? outcome.answer.mtu : 0;
      for (std::size_t i = 0; smaller < prober.least_bytes() && i < std::size(usual); ++i)
        if (usual[i] < bytes) smaller = usual[i];
      if (smaller < prober.least_bytes() || smaller >= bytes) return;
      bytes = smaller;
    }
  }

  void find_limits(Prober& prober) {
    for (Hop& hop : path_.hops) {
      if (!hop.address) continue;
      on_progress_({"searching for hops that limit the rate of their answers", hop.limit,
                    static_cast<unsigned>(path_.hops.size())});
      const unsigned answered = prober.burst(hop.limit, prober.least_bytes(), kBurst, options_.wait);
      if (stop_.is_requested()) path_.interrupted = true;
      if (path_.interrupted) return;
      hop.rate_limited = answered <= kBurstOfLimited;
    }
  }

  const PathOptions& options_;
  const Stop& stop_;
  Path& path_;
  const OnProgress& on_progress_;
};

}  // namespace

std::unique_ptr<Prober> discover(const PathOptions& options, const Stop& stop, Path& path,
                                 const OnProgress& on_progress) {
  return Discovery{options, stop, path, on_progress}.run();
}

}  // namespace longhaul::probe
