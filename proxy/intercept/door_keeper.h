// SPDX-License-Identifier: Apache-2.0
// The running daemon's part of fail = "closed": installs the table again if another program has removed it,
// and remembers whether the operator has removed it. flows.h refuses flows in the daemon.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "proxy/intercept/closed_door.h"

namespace longhaul::intercept {

// Writes a line to the log.
void log_change(ClosedDoor::Change change, const config::Config& config);

class DoorKeeper {
 public:
  enum class State : std::uint8_t {
    not_configured,  // the configuration closes nothing, or nothing that passes through this host
    enforced,
    lifted,   // removed by the operator, until the daemon restarts or the operator enforces it
    missing,  // it should be installed but cannot be: `error` says why
  };

  // `config` outlives this object. Nothing happens before begin().
  DoorKeeper(boost::asio::io_context& io, const config::Config& config) : config_(config), timer_(io) {}

  // Enforces the configuration. Call at the start and after each change of the configuration.
  config::TextResult<void> begin();
  // The operator's commands.
  config::TextResult<void> lift();
  config::TextResult<void> enforce();
  void stop() { timer_.cancel(); }

  State state() const { return state_; }
  const std::string& error() const { return error_; }
  // The kernel's table; empty if there is none, or it cannot be read.
  std::string listing();

  // The longest gap after another program's `nft flush ruleset`; it only matters if this daemon dies during
  // it.
  static constexpr std::chrono::seconds kLookEvery{2};

 private:
  void look_later();
  void look();

  const config::Config& config_;
  ClosedDoor door_;
  State state_ = State::not_configured;
  std::string error_;
  bool begun_ = false;
  boost::asio::steady_timer timer_;
};

}  // namespace longhaul::intercept
