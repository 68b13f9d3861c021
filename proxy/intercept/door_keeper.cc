// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/door_keeper.h"

#include "proxy/intercept/closed_rules.h"
#include "proxy/intercept/kept_rules.h"
#include "proxy/log/log.h"

namespace longhaul::intercept {

void log_change(ClosedDoor::Change change, const config::Config& config) {
  const std::string table = closed_table_name(config.intercept.port);
  if (change == ClosedDoor::Change::put_in)
    log::info("fail_closed",
              {{"table", table}, {"removed_by", "longhaul fail-closed remove " + config.file.string()}});
  if (change == ClosedDoor::Change::taken_out)
    log::info("fail_closed_removed",
              {{"table", table}, {"reason", "the configuration no longer says fail = closed"}});
}

config::TextResult<void> DoorKeeper::begin() {
  const auto done = enforce();
  begun_ = true;
  if (state_ != State::not_configured) look_later();
  return done;
}

config::TextResult<void> DoorKeeper::enforce() {
  const auto done = door_.enforce(config_);
  error_ = done ? std::string() : done.error().message;
  if (!done) {
    state_ = State::missing;
    return done.error();
  }
  if (const auto rules = closed_rules(config_); rules)
    if (const auto kept = keep_rules(config_.state_dir, *rules); !kept)
      log::warn("fail_closed_kept", {{"reason", kept.error().message},
                                     {"effect", "not installed at boot if the configuration cannot be read then"}});
  const State before = state_;
  state_ = *done == ClosedDoor::Change::put_in ? State::enforced : State::not_configured;
  if (begun_ && state_ != before) log_change(*done, config_);  // at the start the caller logs it
  return {};
}

config::TextResult<void> DoorKeeper::lift() {
  const auto removed = door_.remove(config_.intercept.port);
  if (!removed) return removed.error();
  if (state_ == State::not_configured) return {};  // there was nothing to remove
  state_ = State::lifted;
  log::warn("fail_closed_lifted", {{"effect", "while the link is down, flows leave unencrypted"},
                                   {"until", "restart, or longhaul fail-closed install"}});
  return {};
}

std::string DoorKeeper::listing() {
  const auto listing = door_.listing(config_.intercept.port);
  return listing ? *listing : std::string();
}

void DoorKeeper::look_later() {
  timer_.expires_after(kLookEvery);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    look();
    look_later();
  });
}

void DoorKeeper::look() {
  if (state_ == State::lifted || state_ == State::not_configured) return;
  const auto there = door_.is_in_place(config_.intercept.port);
  if (there && *there) return;
  const bool was_enforced = state_ == State::enforced;
  const auto done = enforce();
  if (done) {
    log::warn("fail_closed_restored", {{"table", closed_table_name(config_.intercept.port)},
                                       {"reason", "another program removed it"}});
  } else if (was_enforced) {
    log::error("fail_closed_missing", {{"reason", done.error().message}});
  }
}

}  // namespace longhaul::intercept
