// SPDX-License-Identifier: Apache-2.0
#include "proxy/transparent_mode.h"

#include "proxy/intercept/closed_rules.h"
#include "proxy/intercept/host_checks.h"
#include "proxy/log/log.h"
#include "proxy/peer_addresses.h"

namespace longhaul {
namespace asio = boost::asio;
namespace {

// Connections that the kernel holds for both transparent listeners: half-open ones, and those not accepted.
constexpr std::size_t kUnderWay = 4 * net::kBacklog;

// At the limit, packet rules let clients bypass this proxy; connections in progress when the rules change are
// relayed.
net::AcceptLoop::HasRoom room_for_late_flows(const config::Config& config, const flows::FlowTable& table) {
  return [&config, &table](const asio::ip::address&) {
    return table.live().size() < 2 * std::size_t{config.limits.flows} + kUnderWay;
  };
}

}  // namespace

TransparentMode::TransparentMode(asio::io_context& io, const config::Config& config, bool fast_connect,
                                 flows::Flows& flows, const flows::FlowTable& table, flows::Dialer& dialer)
    : config_(config),
      flows_(flows),
      dialer_(dialer),
      door_(io, config),
      interception_(
          io, config.intercept, fast_connect,
          [&flows](flows::Accepted accepted) { flows.start(std::move(accepted)); },
          room_for_late_flows(config, table), config.limits.new_flows_per_source) {
  flows_.on_crowded = [this](const flows::Crowded& crowded) { interception_.leave_alone(crowded); };
  flows_.on_server_refused = [this](const asio::ip::tcp::endpoint& server) { interception_.refuse(server); };
  (void)interception_.set_peers(
      configured_addresses(config_.peers));  // only stored: nothing is in force yet
}

bool TransparentMode::wants_to_divert() const {
  // A far side that uses clients' addresses towards servers must intercept the replies to them.
  return config_.link.listen.has_value() || !config_.link.allow.empty();
}

void TransparentMode::begin() {
  close_door();
  if (config_.intercept.mode == config::Intercept::Mode::tproxy) {
    log_findings();
    auto up = interception_.up();
    // If the host refuses the configuration, that is an error at the start; later, `intercept up` tries
    // again.
    if (!up) {
      const std::string& why = up.error().message;
      throw net::ListenerError(why.starts_with("[intercept]") ? why : "[intercept] " + why);
    }
    log::info("intercept_up", {});
  } else if (wants_to_divert() && door_.state() == intercept::DoorKeeper::State::missing) {
    // A server's data for a client's address could leave unencrypted when this daemon has ended.
    dialer_.show_clients(false);
    log::warn("divert", {{"reason", door_.error()},
                         {"effect", "servers see this proxy's address instead of the client's"}});
  } else if (wants_to_divert()) {
    divert();
  }
}

void TransparentMode::divert() {
  auto diverted = interception_.divert();
  dialer_.show_clients(diverted.has_value());
  if (!diverted)
    log::warn("divert", {{"reason", diverted.error().message},
                         {"effect", "servers see this proxy's address instead of the client's"}});
}

void TransparentMode::close() {
  interception_.close();
  door_.stop();  // its rules stay in force
}

// Enforces fail = closed before a flow can be intercepted.
void TransparentMode::close_door() {
  const auto closed = apply_door(door_.begin());
  if (!closed && config_.intercept.mode == config::Intercept::Mode::tproxy)
    throw net::ListenerError("[intercept] " + closed.error().message);
  if (const auto taken_over = intercept::take_over_leftovers(config_); !taken_over)
    log::warn("leftovers", {{"reason", taken_over.error().message}});
}

// The daemon's own refusals match the kernel's rules.
config::TextResult<void> TransparentMode::apply_door(config::TextResult<void> done) {
  const auto rules = intercept::closed_rules(config_);
  const bool lifted = door_.state() == intercept::DoorKeeper::State::lifted;
  flows_.set_closed(lifted ? flows::Closed::lifted : flows::Closed::enforced);
  const bool takes_closed = rules && rules->close_something() && !lifted;
  auto set = interception_.set_closed_flows(takes_closed ? closed_flows_text(*rules, "goto admit") : "");
  if (done && !set) return set;
  return done;
}

void TransparentMode::log_findings() const {
  const auto findings = intercept::host_findings(config_);
  // Continuing would look like success, but no flow would be intercepted.
  for (const intercept::Finding& finding : findings)
    if (finding.weight == intercept::Finding::Weight::blocks)
      throw net::ListenerError("[intercept]: " + finding.sentence + " Remedy: " + finding.remedy + ".");
  for (const intercept::Finding& finding : findings)
    log::warn("host", {{"finding", finding.sentence}, {"remedy", finding.remedy}});
}

// If this fails, earlier rules stay in force.
void TransparentMode::enforce_again() {
  if (const auto closed = apply_door(door_.begin()); !closed)
    log::error("fail_closed_missing", {{"reason", closed.error().message}});
}

void TransparentMode::apply_limits() {
  if (auto set = interception_.set_new_flows_per_source(config_.limits.new_flows_per_source); !set)
    log::warn("intercept", {{"reason", set.error().message}});
}

void TransparentMode::apply_peers() {
  if (auto set = interception_.set_peers(configured_addresses(config_.peers)); !set)
    log::warn("intercept", {{"reason", set.error().message}});
}

void TransparentMode::set_fast_connect(bool on) {
  if (auto set = interception_.set_fast_connect(on); !set)
    log::warn("intercept", {{"reason", set.error().message}});
}

boost::system::result<void, control::Refusal> TransparentMode::command(control::InterceptAction action) {
  using Action = control::InterceptAction;
  if (action == Action::fail_closed_install || action == Action::fail_closed_remove) {
    const auto done = apply_door(action == Action::fail_closed_install ? door_.enforce() : door_.lift());
    if (!done) return control::Refusal{done.error().message};
    return {};
  }
  if (config_.intercept.mode == config::Intercept::Mode::off)
    return control::Refusal{"the configuration does not set [intercept] mode = \"tproxy\""};
  auto done = action == control::InterceptAction::up ? interception_.up() : interception_.divert();
  error_ = done ? std::string() : done.error().message;
  if (!done) return control::Refusal{done.error().message};
  log::info(action == control::InterceptAction::up ? "intercept_up" : "intercept_down", {});
  return {};
}

void TransparentMode::report_to(control::Status& status) const {
  status.intercept = config_.intercept.mode == config::Intercept::Mode::off
                         ? control::InterceptState::not_configured
                         : (is_up() ? control::InterceptState::up : control::InterceptState::down);
  status.intercept_error = error_;
  const auto bypassed = interception_.bypassed();
  for (std::size_t i = 0; i < bypassed.size(); ++i)
    status.bypassed.emplace_back(intercept::kBypassCounters[i], bypassed[i]);
  status.fail_closed = door_.state();
  status.fail_closed_error = door_.error();
}

}  // namespace longhaul
