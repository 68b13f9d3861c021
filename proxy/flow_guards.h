// SPDX-License-Identifier: Apache-2.0
// Updates transparent mode's list of flows that are always intercepted, because their clients must receive a
// report of lost writes, or may have to soon. The modules and flows/doubt.h have these clients.
#pragma once
#include <boost/asio/io_context.hpp>
#include <vector>

#include "proxy/flows/flows.h"
#include "proxy/modules/modules.h"
#include "proxy/transparent_mode.h"

namespace longhaul {

class FlowGuards {
 public:
  // All references outlive this object.
  FlowGuards(boost::asio::io_context& io, flows::Flows& flows, modules::List modules,
             TransparentMode& transparent)
      : io_(io), flows_(flows), modules_(modules), transparent_(transparent) {}
  FlowGuards(const FlowGuards&) = delete;
  FlowGuards& operator=(const FlowGuards&) = delete;

  // Guards flows from now on, and follows the modules' and flows' changes.
  void begin();
  // These clients have changed. Many calls in one turn of the event loop cause one update.
  void update_soon();

 private:
  void update();

  boost::asio::io_context& io_;
  flows::Flows& flows_;
  modules::List modules_;
  TransparentMode& transparent_;
  bool is_due_ = false;  // update() is scheduled
};

// The flows to guard, for each module that makes promises: those of clients that the module guards, and
// `doubted`.
std::vector<intercept::GuardedFlows> guarded_flows(modules::List modules,
                                                   const std::vector<modules::Ends>& doubted);

}  // namespace longhaul
