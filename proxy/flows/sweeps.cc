// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/sweeps.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "codecs/work.h"

namespace longhaul::flows {
namespace {

// A millisecond or two, in units of codecs/work.h.
constexpr std::uint64_t kWorkPerTurn = 1 << 20;
constexpr std::uint64_t kWorkPerLook = 300;

}  // namespace

Sweeps::Sweeps(boost::asio::io_context& io, const FlowsById& flows)
    : io_(io), flows_(flows), self_(std::make_shared<Sweeps*>(this)) {}

Sweeps::~Sweeps() { *self_ = nullptr; }

void Sweeps::begin(Kind kind, const link::PeerLink* link, Visit visit, std::function<void()> done) {
  const auto waits = [&](const Sweep& each) {
    return each.kind == kind && each.link == link && each.last == 0;
  };
  if (std::ranges::any_of(sweeps_, waits)) return;
  sweeps_.push_back({kind, link, std::move(visit), std::move(done)});
  if (sweeps_.size() == 1) turn_soon();
}

bool Sweeps::under_way(Kind kind, const link::PeerLink& link) const {
  return std::ranges::any_of(sweeps_,
                             [&](const Sweep& each) { return each.kind == kind && each.link == &link; });
}

void Sweeps::turn_soon() {
  boost::asio::post(io_, [self = self_] {
    if (*self) (*self)->turn();
  });
}

void Sweeps::turn() {
  WorkBudget budget(kWorkPerTurn);
  WorkBudget::Scope working(budget);
  ++counters_.turns;
  const std::uint64_t before = counters_.visits;
  while (!sweeps_.empty() && !budget.used_up()) {
    const auto most_urgent = std::ranges::min_element(sweeps_, {}, &Sweep::kind);
    Sweep& sweep = *most_urgent;
    const auto next = flows_.upper_bound(sweep.last);
    if (next == flows_.end()) {
      const auto done = std::move(sweep.done);
      sweeps_.erase(most_urgent);
      if (done) done();
      continue;
    }
    count_work(kWorkPerLook);
    sweep.last = next->first;
    LinkedFlow& flow = *next->second;
    if (sweep.link && &flow.link() != sweep.link) continue;
    ++counters_.visits;
    sweep.visit(next->first, flow);
  }
  counters_.most_visits = std::max(counters_.most_visits, counters_.visits - before);
  if (!sweeps_.empty()) turn_soon();
}

}  // namespace longhaul::flows
