// SPDX-License-Identifier: Apache-2.0
// Transparent mode in the daemon: interception, fail = closed, and replies to clients' addresses that this
// proxy uses towards servers. intercept/ has the parts; this class defines their order.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/system/result.hpp>
#include <string>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/control/controlled.h"
#include "proxy/flows/flows.h"
#include "proxy/intercept/door_keeper.h"
#include "proxy/intercept/interception.h"

namespace longhaul {

class TransparentMode {
 public:
  // All references outlive this object; a reload may change the configuration. `fast_connect`: as in force.
  TransparentMode(boost::asio::io_context& io, const config::Config& config, bool fast_connect,
                  flows::Flows& flows, const flows::FlowTable& table, flows::Dialer& dialer);
  TransparentMode(const TransparentMode&) = delete;
  TransparentMode& operator=(const TransparentMode&) = delete;

  // To be called at the start: enforces fail = closed, then intercepts or diverts as configured. Throws
  // net::ListenerError if the host cannot run that configuration.
  void begin();
  // Ends interception; the rules of fail = closed stay.
  void close();

  // To be called after a reload, in this order: first the steps of the start, then limits, and the peers when
  // they are in force.
  void enforce_again();
  void apply_limits();
  void apply_peers();
  void set_fast_connect(bool on);
  // Sets the flows that are always intercepted.
  void guard(std::vector<intercept::GuardedFlows> flows) { interception_.guard(std::move(flows)); }

  boost::system::result<void, control::Refusal> command(control::InterceptAction action);
  bool is_up() const { return interception_.is_up(); }
  // The error of the operator's last command; empty if there was none.
  const std::string& error() const { return error_; }
  std::string rules() const { return interception_.rules_text(); }
  std::string fail_closed_rules() { return door_.listing(); }
  void report_to(control::Status& status) const;

 private:
  bool wants_to_divert() const;
  void close_door();
  config::TextResult<void> apply_door(config::TextResult<void> done);
  void divert();
  void log_findings() const;

  const config::Config& config_;
  flows::Flows& flows_;
  flows::Dialer& dialer_;
  intercept::DoorKeeper door_;
  intercept::Interception interception_;
  std::string error_;
};

}  // namespace longhaul
