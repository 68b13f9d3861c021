// SPDX-License-Identifier: Apache-2.0
// Transparent mode as a whole: listeners, packet rules and routing, put in and taken out together. What
// becomes of a flow that was taken is left to whoever starts it.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/text_error.h"
#include "proxy/flows/accepted.h"
#include "proxy/intercept/nft_rules.h"
#include "proxy/intercept/nft_table.h"
#include "proxy/intercept/policy_route.h"
#include "proxy/intercept/tproxy_listener.h"

namespace longhaul::intercept {

class Interception {
 public:
  // Nothing is touched before up() or divert().
  Interception(boost::asio::io_context& io, const config::Intercept& config, bool fast_connect,
               flows::FlowStarter start, listeners::AcceptLoop::HasRoom has_room = {});
  ~Interception();  // close
  Interception(const Interception&) = delete;
  Interception& operator=(const Interception&) = delete;

  // Takes new flows from now on. Where something is missing, all is as before and the error is a sentence.
  config::TextResult<void> up();
  // Takes no new flows, and goes on handing us the packets of those that live: what `intercept down` means,
  // and what a far side needs to dial with clients' addresses (source = client or auto).
  config::TextResult<void> divert();
  // Everything out. Flows that were taken, or dialled with a client's address, are cut off.
  void close();
  bool is_up() const { return state_ == State::up; }
  // Answers to clients' addresses come back here.
  bool is_diverting() const { return state_ != State::closed; }
  // The rules as nft(8) reads them, as they are or, where they are not in force, as up() would make them.
  std::string rules_text() const;

  // A server that refused or cannot be reached: the next connections to it pass plainly for kRefusedFor.
  // Entries are made together after kRefuseDelay; no client is back sooner.
  void refuse(const boost::asio::ip::tcp::endpoint& server);
  // In force at once.
  config::TextResult<void> set_fast_connect(bool on);
  config::TextResult<void> set_peers(std::vector<boost::asio::ip::address> peers);
  // Chains of closed_flows_text, or none.
  config::TextResult<void> set_closed_flows(std::string chains);

  static constexpr std::chrono::milliseconds kRefuseDelay{5};
  static constexpr std::size_t kRefuseAtOnce = 1000;  // waiting for the delay; more are forgotten

 private:
  enum class State : std::uint8_t { closed, diverting, up };
  config::TextResult<void> reach(State wanted);
  RuleSet rules_for(State state) const;
  void enter_refused();

  boost::asio::io_context& io_;
  flows::FlowStarter start_;
  listeners::AcceptLoop::HasRoom has_room_;
  RuleSet rules_;  // as up() makes them
  PolicyRoute route_;
  State state_ = State::closed;
  std::optional<TproxyListener> listener_;
  NftTable table_;
  std::vector<boost::asio::ip::tcp::endpoint> refused_;  // not entered yet
  boost::asio::steady_timer refuse_timer_;
};

}  // namespace longhaul::intercept
