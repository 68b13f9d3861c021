// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/interception.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "proxy/intercept/nft_counters.h"
#include "proxy/log/log.h"
#include "proxy/net/marks.h"

namespace longhaul::intercept {

namespace asio = boost::asio;
namespace {

void warn_unguarded(const config::TextError& error) {
  log::warn("intercept", {{"reason", error.message},
                          {"effect", "lost writes are not reported to clients that bypass the link"}});
}

}  // namespace

Interception::Interception(asio::io_context& io, const config::Intercept& config, bool fast_connect,
                           flows::FlowStarter start, net::AcceptLoop::HasRoom has_room,
                           std::uint32_t new_flows_per_source)
    : io_(io),
      start_(std::move(start)),
      has_room_(std::move(has_room)),
      rules_{.interfaces = config.interfaces,
             .port = config.port,
             .peers = {},
             .fast_connect = fast_connect,
             .new_flows_per_source = new_flows_per_source,
             .crowded = {}},
      // No other program uses the number of the mark, so it is also the table's number.
      route_{.mark = net::divert_mark(config.port), .table = net::divert_mark(config.port)},
      change_timer_(io) {}

Interception::~Interception() { close(); }

RuleSet Interception::rules_for(State state) const {
  RuleSet rules = rules_;
  if (state != State::up) rules.interfaces.clear();
  if (!listener_) rules.guarded.clear();
  return rules;
}

config::TextResult<void> Interception::reach(State wanted) {
  const bool was_closed = state_ == State::closed;
  if (wanted == State::up && !listener_) {
    if (rules_.interfaces.empty())
      return config::TextError{
          "[intercept] interfaces is empty, so there is no interface to intercept flows on"};
    for (const std::string& name : rules_.interfaces)
      if (!is_interface_name(name))
        return config::TextError{"\"" + name + "\" is not a valid interface name"};
    if (auto listening = listen(); !listening) return listening;
  }
  // This is only for guarded flows: on failure they are not intercepted, like all others.
  if (wanted == State::diverting && !listener_ && !rules_.guarded.empty()) {
    if (const auto listening = listen(); !listening) warn_unguarded(listening.error());
  }
  config::TextResult<void> done = was_closed ? add(route_) : config::TextResult<void>();
  if (done) {
    auto bypassed_so_far = bypassed();
    done = table_.run(replace_text(rules_for(wanted)));
    if (done)
      bypassed_before_ = std::move(bypassed_so_far);
    else
      done =
          config::TextError{"cannot install the packet rules of transparent mode: " + done.error().message};
  }
  if (done) {
    state_ = wanted;
  } else if (was_closed) {
    close();
  }
  return done;
}

config::TextResult<void> Interception::listen() {
  try {
    listener_.emplace(io_, rules_.port, start_, has_room_);
  } catch (const net::ListenerError& error) {
    return config::TextError{error.what()};
  }
  return {};
}

config::TextResult<void> Interception::up() { return reach(State::up); }

config::TextResult<void> Interception::divert() { return reach(State::diverting); }

void Interception::close() {
  change_timer_.cancel();
  change_is_due_ = false;
  crowded_changed_ = guarded_changed_ = false;
  refused_.clear();
  table_.close();
  if (state_ != State::closed) remove(route_);
  listener_.reset();
  state_ = State::closed;
}

std::vector<std::uint64_t> Interception::bypassed() const {
  std::vector<std::uint64_t> sum = bypassed_before_;
  sum.resize(kBypassCounters.size());
  if (state_ == State::closed) return sum;
  const auto now = counted_packets(table_name(rules_), kBypassCounters);
  std::transform(now.begin(), now.end(), sum.begin(), sum.begin(), std::plus<>());
  return sum;
}

std::string Interception::rules_text() const {
  return table_text(state_ == State::closed ? rules_ : rules_for(state_));
}

void Interception::refuse(const asio::ip::tcp::endpoint& server) {
  if (state_ != State::up || refused_.size() >= kRefuseAtOnce) return;
  refused_.push_back(server);
  change_soon();
}

void Interception::leave_alone(const flows::Crowded& crowded) {
  if (std::exchange(rules_.crowded, crowded) == crowded || state_ != State::up) return;
  crowded_changed_ = true;
  change_soon();
}

void Interception::guard(std::vector<GuardedFlows> flows) {
  const auto key = [](const GuardedFlows& each) { return std::tie(each.client, each.server, each.port); };
  std::ranges::sort(flows, {}, key);
  const auto same = std::ranges::unique(flows, {}, key);
  flows.erase(same.begin(), same.end());
  if (std::exchange(rules_.guarded, flows) == flows || state_ == State::closed) return;
  guarded_changed_ = true;
  change_soon();
}

void Interception::change_soon() {
  if (std::exchange(change_is_due_, true)) return;
  // Limits the share of the loop's time for changes caused by clients. The first change after a pause is made
  // without that delay: a client that must be notified may reconnect within 0.2 s.
  constexpr int kShare = 20;
  change_timer_.expires_at(std::max(std::chrono::steady_clock::now() + kChangeDelay,
                                    last_change_at_ + kShare * last_change_took_));
  change_timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) change();
  });
}

void Interception::change() {
  change_is_due_ = false;
  const auto refused = std::exchange(refused_, {});
  const bool crowded_changed = std::exchange(crowded_changed_, false) && state_ == State::up;
  if (state_ == State::closed) return;
  const auto began = std::chrono::steady_clock::now();
  if (std::exchange(guarded_changed_, false)) change_guarded();
  if (!refused.empty() && state_ == State::up) {
    // If it fails, the next connection is intercepted and refused again, which repeats the attempt.
    if (const auto done = table_.run(refuse_text(rules_, refused)); !done)
      log::warn("intercept", {{"reason", done.error().message},
                              {"effect", "destinations that just refused a connection are not bypassed"},
                              {"destinations", refused.size()}});
  }
  if (crowded_changed) {
    // If it fails, those flows are relayed outside the link, and reset above twice the limit.
    if (const auto done = table_.run(crowded_text(rules_)); !done)
      log::warn("intercept", {{"reason", done.error().message},
                              {"effect", "clients with too many flows are not bypassed"}});
  }
  last_change_at_ = std::chrono::steady_clock::now();
  last_change_took_ = last_change_at_ - began;
}

void Interception::change_guarded() {
  const bool begins = !listener_ && !rules_.guarded.empty();
  const auto done = begins ? reach(state_) : table_.run(guarded_text(rules_for(state_)));
  if (!done) return warn_unguarded(done.error());
  if (const auto strays = table_.run(strays_text(rules_for(state_))); !strays)
    log::warn("intercept",
              {{"reason", strays.error().message},
               {"effect", "connections that bypass the link already are not reset to report lost writes"}});
}

config::TextResult<void> Interception::set_fast_connect(bool on) {
  if (std::exchange(rules_.fast_connect, on) == on || state_ == State::closed) return {};
  return reach(state_);
}

config::TextResult<void> Interception::set_new_flows_per_source(std::uint32_t flows) {
  if (std::exchange(rules_.new_flows_per_source, flows) == flows || state_ == State::closed) return {};
  return reach(state_);
}

config::TextResult<void> Interception::set_peers(std::vector<asio::ip::address> peers) {
  std::sort(peers.begin(), peers.end());
  if (std::exchange(rules_.peers, peers) == peers || state_ == State::closed) return {};
  return reach(state_);
}

config::TextResult<void> Interception::set_closed_flows(std::string chains) {
  if (std::exchange(rules_.closed_flows, chains) == chains || state_ == State::closed) return {};
  return reach(state_);
}

}  // namespace longhaul::intercept
