// SPDX-License-Identifier: Apache-2.0
// The running daemon's part of fail = "closed": installs the table again if another program has removed it,
// and remembers whether the operator has lifted it. flows.h refuses flows in the daemon.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "proxy/intercept/closed_door.h"

namespace longhaul::intercept {

// A line in the log.
void log_change(ClosedDoor::Change change, const config::Config& config);

class DoorKeeper {
 public:
  enum class State : std::uint8_t {
    not_configured,  // the configuration closes nothing, or nothing that passes through this host
    enforced,
    lifted,   // by the operator's command, until the daemon starts again or the operator enforces it
    missing,  // it should be in place and cannot be put in: `error` says why
  };

  // `config` outlives this object. Nothing is touched before begin().
  DoorKeeper(boost::asio::io_context& io, const config::Config& config) : config_(config), timer_(io) {}

  // At the start, and when the configuration has changed: enforces what it says now, and keeps that up.
  config::TextResult<void> begin();
  // The operator's commands.
  config::TextResult<void> lift();
  config::TextResult<void> enforce();
  void stop() { timer_.cancel(); }

  State state() const { return state_; }
  const std::string& error() const { return error_; }
  // The table as the kernel has it; empty: there is none, or it cannot be asked.
  std::string listing();

  // How long `nft flush ruleset` of somebody else can leave a gap, which matters only if this daemon dies in
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
