// SPDX-License-Identifier: Apache-2.0
// One probe at a time, in rounds over all hops, so that no probe waits behind another of ours.
#include "tools/probe/sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tools/probe/discover.h"

namespace longhaul::probe {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLimitedGap{
    1050};  // Linux: one ICMP error a second to each host, six at once (icmp_ratelimit)
constexpr unsigned kEnoughToKnow = 20;  // answers, before waiting is shortened by them

class Sweep {
 public:
  Sweep(const PathOptions& options, Prober& prober, const Stop& stop, Path& path,
        const OnProgress& on_progress)
      : options_(options), prober_(prober), stop_(stop), path_(path), on_progress_(on_progress) {
    for (std::size_t i = 0; i < path.hops.size(); ++i) {
      if (!path.hops[i].address) continue;
      Target target{.hop = i};
      const auto knee = find_knee(path.hops[i]);
      target.sizes = plan_sizes(prober.least_bytes(), path.mtu, knee, options.sizes);
      target.gap = options.gap.value_or(path.hops[i].rate_limited ? kLimitedGap : milliseconds{0});
      targets_.push_back(std::move(target));
    }
  }

  void run() {
    std::mt19937_64 dice{options_.seed};
    const auto began = Clock::now();
    unsigned done = 0, all = 0;
    std::size_t most_sizes = 0;
    for (const Target& target : targets_) {
      all += static_cast<unsigned>(target.sizes.size()) * options_.repeats;
      most_sizes = std::max(most_sizes, target.sizes.size());
    }
    for (unsigned round = 0; round < options_.repeats; ++round) {
      for (Target& target : targets_) std::shuffle(target.sizes.begin(), target.sizes.end(), dice);
      for (std::size_t turn = 0; turn < most_sizes; ++turn)
        for (Target& target : targets_) {
          if (turn >= target.sizes.size()) continue;
          if (!one(target, target.sizes[turn])) {
            path_.interrupted = true;
            return finish();
          }
          ++done;
          const std::chrono::duration<double> used = Clock::now() - began;
          on_progress_({"probes", done, all, used.count() / done * (all - done)});
        }
    }
    finish();
  }

 private:
  struct Target {
    std::size_t hop;
    std::vector<unsigned> sizes{};
    std::map<unsigned, Point> least{};
    milliseconds gap{0};
    Clock::time_point next{};
    double most_us = 0;
  };

  std::optional<unsigned> find_knee(Hop& hop) {
    const auto ask = [&](unsigned bytes) {
      for (int attempt = 0; attempt < 3; ++attempt) {
        if (hop.rate_limited) measuring::pause(kLimitedGap, stop_);
        const Outcome outcome = prober_.probe(hop.limit, bytes, options_.wait);
        if (outcome.fate == Fate::answered) return Sizes{bytes, outcome.answer.ip_bytes};
        if (outcome.fate == Fate::interrupted) break;
      }
      return Sizes{};
    };
    const Sizes small = ask(prober_.least_bytes()), large = ask(path_.mtu);
    if (small.probe == 0 || large.probe == 0) return std::nullopt;
    return knee_of(small, large);
  }

  // False when the end is asked for.
  bool one(Target& target, unsigned bytes) {
    Hop& hop = path_.hops[target.hop];
    if (const auto early = target.next - Clock::now(); early > Clock::duration::zero())
      measuring::pause(early, stop_);
    target.next = Clock::now() + target.gap;
    auto wait = options_.wait;
    if (hop.answered >= kEnoughToKnow)
      wait = std::min(wait, milliseconds{100 + static_cast<int>(4 * target.most_us / 1000)});
    const Outcome outcome = prober_.probe(hop.limit, bytes, wait);
    if (outcome.fate == Fate::interrupted) return false;
    ++hop.sent;
    if (outcome.fate != Fate::answered) return true;
    ++hop.answered;
    target.most_us = std::max(target.most_us, outcome.us);
    // A path that changed meanwhile would mix two: what another router says counts as an answer, not as a
    // time.
    if (outcome.answer.what != What::expired && outcome.answer.what != What::reached) return true;
    if (bytes_of(outcome.from) != bytes_of(*hop.address)) return true;
    if (hop.least_us == 0 || outcome.us < hop.least_us) hop.least_us = outcome.us;
    const auto [place, is_new] = target.least.try_emplace(
        bytes, Point{static_cast<double>(bytes), static_cast<double>(outcome.answer.ip_bytes), outcome.us});
    if (!is_new && outcome.us < place->second.us) place->second.us = outcome.us;
    return true;
  }

  void finish() {
    for (const Target& target : targets_) {
      Hop& hop = path_.hops[target.hop];
      for (const auto& [bytes, point] : target.least) hop.points.push_back(point);
      hop.fit = fit_round_trip(hop.points, options_.assume);
    }
    path_.links = links_of(path_.hops);
  }

  const PathOptions& options_;
  Prober& prober_;
  const Stop& stop_;
  Path& path_;
  const OnProgress& on_progress_;
  std::vector<Target> targets_;
};

Share share_at(const Hop& hop) { return share_of(hop.sent - hop.answered, hop.sent); }

// Losses on the way to a hop are losses on the way to all behind it. What only this hop misses, it did not
// answer.
std::vector<Share> losses_of(const std::vector<const Hop*>& hops) {
  std::vector<Share> losses;
  for (const Hop* hop : hops) losses.push_back(share_at(*hop));
  for (std::size_t i = losses.size(); i-- > 1;)
    if (losses[i].high < losses[i - 1].low) losses[i - 1] = losses[i];
  return losses;
}

}  // namespace

const char* name_of(Kind kind) { return kind == Kind::udp ? "UDP" : kind == Kind::icmp ? "ICMP" : "TCP"; }

std::vector<Link> links_of(const std::vector<Hop>& hops) {
  std::vector<const Hop*> known;
  for (const Hop& hop : hops)
    if (hop.fit) known.push_back(&hop);
  const std::vector<Share> losses = losses_of(known);
  std::vector<Link> links;
  std::optional<RoundTrip> before;
  Share lost_before{0, 0, 0};
  unsigned from = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    Link link{.from = from, .to = known[i]->limit};
    const RoundTrip after = with_what_is_known(before, *known[i]->fit);
    link.fit = link_between(before, after);
    // What came to the hop before and was lost behind it; the bounds as far apart as the two intervals allow.
    const auto part = [](double all, double first) {
      return std::clamp(1 - (1 - all) / (1 - first), 0., 1.);
    };
    if (lost_before.high < 1)
      link.loss = {part(losses[i].value, lost_before.value), part(losses[i].low, lost_before.high),
                   part(losses[i].high, lost_before.low)};
    links.push_back(link);
    before = after;
    lost_before = losses[i];
    from = known[i]->limit;
  }
  return links;
}

Path probe_path(const PathOptions& options, const Stop& stop, const OnProgress& on_progress) {
  Path path;
  path.host = options.host;
  path.address = resolve(options.host, options.family);
  auto prober = discover(options, stop, path, on_progress);
  if (path.interrupted || path.hops.empty()) return path;
  Sweep{options, *prober, stop, path, on_progress}.run();
  return path;
}

}  // namespace longhaul::probe
