// SPDX-License-Identifier: Apache-2.0
// The daemon's start: listeners, interception, the links, and the kernel rules before that.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "proxy/control/token.h"
#include "proxy/daemon_parts.h"
#include "proxy/intercept/closed_rules.h"
#include "proxy/intercept/host_checks.h"
#include "proxy/log/log.h"

namespace longhaul {
namespace asio = boost::asio;
namespace {

// Connections that the kernel holds for both transparent listeners: half-open ones, and those not accepted.
constexpr std::size_t kUnderWay = 4 * net::kBacklog;

}  // namespace

bool Daemon::wants_to_divert() const {
  // A far side that uses clients' addresses towards servers must intercept the answers to them.
  return config_.link.listen.has_value() || !config_.link.allow.empty();
}

void Daemon::start() {
  auto begin = [this](flows::Accepted accepted) { flows_.start(std::move(accepted)); };
  auto has_room = [this](const asio::ip::address& client) { return flows_.has_room(client); };
  // Clients of transparent mode bypass this proxy by rule; connections under way when the rule changes are
  // relayed.
  auto any_room = [this](const asio::ip::address&) {
    return table_.live().size() < 2 * std::size_t{config_.limits.flows} + kUnderWay;
  };
  control_ = std::make_unique<control::Server>(
      io_, *this, control::load_or_make_token(config_.state_dir, config_.control.token_file),
      config_.control.listen);
  if (config_.control.tls_listen) control_->listen_tls(*config_.control.tls_listen, web_.control);
  if (config_.link.listen)
    link_listener_ = std::make_unique<link::LinkListener>(shared_, *config_.link.listen, links_,
                                                          config_.limits.handshakes);
  know_peers();
  for (const config::Forward& forward : config_.forwards)
    forwards_.push_back(std::make_unique<listeners::ForwardListener>(io_, forward, begin, has_room));
  if (config_.socks.listen)
    socks_ = std::make_unique<listeners::Socks5Listener>(io_, *config_.socks.listen, begin, has_room);

  interception_ = std::make_unique<intercept::Interception>(io_, config_.intercept, features_.fast_connect,
                                                            begin, any_room,
                                                            config_.limits.new_flows_per_source);
  flows_.on_crowded = [this](const flows::Crowded& crowded) { interception_->leave_alone(crowded); };
  flows_.on_server_refused = [this](const asio::ip::tcp::endpoint& server) { interception_->refuse(server); };
  (void)interception_->set_peers(peer_addresses());  // only remembered: nothing is in force yet
  guard_flows();
  flows_.on_doubt_settled = [this] { guard_soon(); };
  for (const modules::Listed& module : modules_) {
    modules::Losses* losses = module.instance->losses();
    if (!losses) continue;
    losses->on_guarded([this] { guard_soon(); });
    losses->on_given_up([this] { flows_.run_modules(); });
  }
  close_door();
  if (config_.intercept.mode == config::Intercept::Mode::tproxy) {
    log_findings();
    auto up = interception_->up();
    // If the host refuses the configuration it is an error at start; later, `intercept up` tries again.
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
    auto diverted = interception_->divert();
    dialer_.show_clients(diverted.has_value());
    if (!diverted)
      log::warn("divert", {{"reason", diverted.error().message},
                           {"effect", "servers see this proxy's address instead of the client's"}});
  }
  asio::co_spawn(io_, control_->run(), asio::detached);
  for (auto& link : links_) link->start();
  path_keeper_.begin();
  history_keeper_.on_sample = [this](const flows::FlowBytes& bytes) { measure(bytes); };
  history_keeper_.begin();
  begin_exports();
  watchdog_ = std::make_unique<intercept::Watchdog>(io_);
}

// Before a flow can be intercepted.
void Daemon::close_door() {
  const auto closed = apply_door(door_.begin());
  if (!closed && config_.intercept.mode == config::Intercept::Mode::tproxy)
    throw net::ListenerError("[intercept] " + closed.error().message);
  if (const auto taken_over = intercept::take_over_leftovers(config_); !taken_over)
    log::warn("leftovers", {{"reason", taken_over.error().message}});
}

// The daemon's own refusals match the kernel's rules.
config::TextResult<void> Daemon::apply_door(config::TextResult<void> done) {
  const auto rules = intercept::closed_rules(config_);
  const bool lifted = door_.state() == intercept::DoorKeeper::State::lifted;
  flows_.set_closed(lifted ? flows::Closed::lifted : flows::Closed::enforced);
  const bool takes_closed = rules && rules->close_something() && !lifted;
  auto set = interception_->set_closed_flows(takes_closed ? closed_flows_text(*rules, "goto admit") : "");
  if (done && !set) return set;
  return done;
}

void Daemon::log_findings() {
  const auto findings = intercept::host_findings(config_);
  // Continuing would look like success, and no flow would ever be intercepted.
  for (const intercept::Finding& finding : findings)
    if (finding.weight == intercept::Finding::Weight::blocks)
      throw net::ListenerError("[intercept]: " + finding.sentence + " Remedy: " + finding.remedy + ".");
  for (const intercept::Finding& finding : findings)
    log::warn("host", {{"finding", finding.sentence}, {"remedy", finding.remedy}});
}

}  // namespace longhaul
