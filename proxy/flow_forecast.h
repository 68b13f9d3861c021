// SPDX-License-Identifier: Apache-2.0
// Predicts the treatment of a flow that began now: whether it would reach this daemon, from a client or from
// a peer, and then what flows.h decides. Only used by `why`; changes nothing.
#pragma once
#include <memory>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/control/controlled.h"
#include "proxy/flows/flows.h"
#include "proxy/transparent_mode.h"

namespace longhaul {

class FlowForecast {
 public:
  // All references outlive this object.
  FlowForecast(const config::Config& config, const config::Features& features, flows::Flows& flows,
               const std::vector<std::unique_ptr<link::PeerLink>>& links, const TransparentMode& transparent)
      : config_(config), features_(features), flows_(flows), links_(links), transparent_(transparent) {}

  control::Forecast of(const flows::Tuple& tuple);

 private:
  control::Forecast of_this_site(const flows::Tuple& tuple) const;
  control::Forecast of_peer(const link::PeerLink& link, const flows::Tuple& tuple);

  const config::Config& config_;
  const config::Features& features_;  // in force
  flows::Flows& flows_;
  const std::vector<std::unique_ptr<link::PeerLink>>& links_;
  const TransparentMode& transparent_;
};

}  // namespace longhaul
