// SPDX-License-Identifier: Apache-2.0
// Transparent mode as a whole: listeners, packet rules and routing, installed and removed together. The
// callback starts the flows.
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
  // Nothing happens before up() or divert().
  Interception(boost::asio::io_context& io, const config::Intercept& config, bool fast_connect,
               flows::FlowStarter start, net::AcceptLoop::HasRoom has_room = {},
               std::uint32_t new_flows_per_source = RuleSet{}.new_flows_per_source);
  ~Interception();  // close
  Interception(const Interception&) = delete;
  Interception& operator=(const Interception&) = delete;

  // Intercepts new flows from now on. On failure the state is unchanged, and the error is a sentence.
  config::TextResult<void> up();
  // Intercepts no new flows, but still receives the packets of existing ones: the effect of `intercept down`,
  // and required on a far side that connects with clients' addresses (source = client or auto).
  config::TextResult<void> divert();
  // Removes everything. Flows that were intercepted, or connected with a client's address, are cut off.
  void close();
  bool is_up() const { return state_ == State::up; }
  // Whether replies to clients' addresses arrive here.
  bool is_diverting() const { return state_ != State::closed; }
  // Numbers of SYNs since the start that bypassed the proxy because of a limit, in the order of
  // kBypassCounters.
  std::vector<std::uint64_t> bypassed() const;
  // The rules in the syntax of nft(8): the current ones or, if they are not installed, those that up() would
  // install.
  std::string rules_text() const;

  // A server that refused or is unreachable: the next connections to it bypass the proxy for kRefusedFor.
  // Entries are collected and installed after kChangeDelay; no client retries sooner.
  void refuse(const boost::asio::ip::tcp::endpoint& server);
  // Sets the clients whose new flows are not intercepted. Takes effect after kChangeDelay, too.
  void leave_alone(const flows::Crowded& crowded);
  // Sets the flows that are always intercepted, regardless of interfaces and limits, even if no others are.
  // Takes effect after kChangeDelay, too.
  void guard(std::vector<GuardedFlows> flows);
  // These take effect at once.
  config::TextResult<void> set_fast_connect(bool on);
  config::TextResult<void> set_new_flows_per_source(std::uint32_t flows);
  config::TextResult<void> set_peers(std::vector<boost::asio::ip::address> peers);
  // The chains of closed_flows_text, or an empty text.
  config::TextResult<void> set_closed_flows(std::string chains);

  static constexpr std::chrono::milliseconds kChangeDelay{5};
  static constexpr std::size_t kRefuseAtOnce = 1000;  // entries that wait for the delay; more are dropped

 private:
  enum class State : std::uint8_t { closed, diverting, up };
  config::TextResult<void> reach(State wanted);
  config::TextResult<void> listen();
  void change_guarded();
  RuleSet rules_for(State state) const;
  void change_soon();
  void change();

  boost::asio::io_context& io_;
  flows::FlowStarter start_;
  net::AcceptLoop::HasRoom has_room_;
  RuleSet rules_;                               // as up() installs them
  std::vector<std::uint64_t> bypassed_before_;  // counted by earlier tables
  PolicyRoute route_;
  State state_ = State::closed;
  std::optional<TproxyListener> listener_;
  NftTable table_;
  std::vector<boost::asio::ip::tcp::endpoint> refused_;     // not installed yet
  bool crowded_changed_ = false, guarded_changed_ = false;  // not installed yet
  boost::asio::steady_timer change_timer_;
  bool change_is_due_ = false;
  std::chrono::steady_clock::time_point last_change_at_{};
  std::chrono::steady_clock::duration last_change_took_{};
};

}  // namespace longhaul::intercept
