// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/interception.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "proxy/intercept/marks.h"

namespace longhaul::intercept {

namespace asio = boost::asio;

Interception::Interception(asio::io_context& io, const config::Intercept& config, bool fast_connect,
                           flows::FlowStarter start, listeners::AcceptLoop::HasRoom has_room)
    : io_(io),
      start_(std::move(start)),
      has_room_(std::move(has_room)),
      rules_{.interfaces = config.interfaces, .port = config.port, .peers = {}, .fast_connect = fast_connect},
      // The mark is a number that nobody else uses, so it serves as the table's number too.
      route_{.mark = divert_mark(config.port), .table = divert_mark(config.port)},
      refuse_timer_(io) {}

Interception::~Interception() { close(); }

RuleSet Interception::rules_for(State state) const {
  RuleSet rules = rules_;
  if (state != State::up) rules.interfaces.clear();
  return rules;
}

config::TextResult<void> Interception::reach(State wanted) {
  const bool was_closed = state_ == State::closed;
  if (wanted == State::up && !listener_) {
    if (rules_.interfaces.empty())
      return config::TextError{"[intercept] interfaces names no interface to take flows on"};
    for (const std::string& name : rules_.interfaces)
      if (!is_interface_name(name))
        return config::TextError{"\"" + name + "\" cannot be an interface's name"};
    try {
      listener_.emplace(io_, rules_.port, start_, has_room_);
    } catch (const listeners::ListenerError& error) {
      return config::TextError{error.what()};
    }
  }
  config::TextResult<void> done = was_closed ? add(route_) : config::TextResult<void>();
  if (done) {
    done = table_.run(replace_text(rules_for(wanted)));
    if (!done)
      done = config::TextError{"the rules of transparent mode cannot be put in: " + done.error().message};
  }
  if (done) {
    state_ = wanted;
  } else if (was_closed) {
    close();
  }
  return done;
}

config::TextResult<void> Interception::up() { return reach(State::up); }

config::TextResult<void> Interception::divert() { return reach(State::diverting); }

void Interception::close() {
  refuse_timer_.cancel();
  refused_.clear();
  table_.close();
  if (state_ != State::closed) remove(route_);
  listener_.reset();
  state_ = State::closed;
}

std::string Interception::rules_text() const {
  return table_text(state_ == State::closed ? rules_ : rules_for(state_));
}

void Interception::refuse(const asio::ip::tcp::endpoint& server) {
  if (state_ != State::up || refused_.size() >= kRefuseAtOnce) return;
  refused_.push_back(server);
  if (refused_.size() > 1) return;  // the timer runs
  refuse_timer_.expires_after(kRefuseDelay);
  refuse_timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) enter_refused();
  });
}

void Interception::enter_refused() {
  if (state_ != State::up) return;
  const auto done = table_.run(refuse_text(rules_, refused_));
  // Then the next attempt is taken and refused again, and the one after it has another chance.
  if (!done) spdlog::warn("{} refused destinations not entered: {}", refused_.size(), done.error().message);
  refused_.clear();
}

config::TextResult<void> Interception::set_fast_connect(bool on) {
  if (std::exchange(rules_.fast_connect, on) == on || state_ == State::closed) return {};
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
