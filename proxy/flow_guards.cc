// SPDX-License-Identifier: Apache-2.0
#include "proxy/flow_guards.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "proxy/flows/ends.h"

namespace longhaul {

void FlowGuards::begin() {
  update();
  flows_.on_doubt_settled = [this] { update_soon(); };
  for (const modules::Listed& module : modules_) {
    modules::Losses* losses = module.instance->losses();
    if (!losses) continue;
    losses->on_guarded([this] { update_soon(); });
    losses->on_given_up([this] { flows_.run_modules(); });
  }
}

void FlowGuards::update_soon() {
  if (!std::exchange(is_due_, true)) boost::asio::post(io_, [this] { update(); });
}

void FlowGuards::update() {
  is_due_ = false;
  // The same limit as for lost files: the sets of the rules have room for both.
  transparent_.guard(guarded_flows(modules_, flows_.in_doubt(modules::kMostLostFiles)));
}

std::vector<intercept::GuardedFlows> guarded_flows(modules::List modules,
                                                   const std::vector<modules::Ends>& doubted) {
  std::vector<intercept::GuardedFlows> guarded;
  for (const modules::Listed& module : modules) {
    modules::Losses* losses = module.instance->losses();
    if (!losses) continue;
    std::vector<modules::Ends> all = losses->guarded();
    all.insert(all.end(), doubted.begin(), doubted.end());
    for (const modules::Ends& ends : all)
      for (const std::uint16_t port : module.descriptor.ports)
        guarded.push_back({flows::address_in(ends.client), flows::address_in(ends.server), port});
  }
  return guarded;
}

}  // namespace longhaul
