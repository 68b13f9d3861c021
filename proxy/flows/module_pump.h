// SPDX-License-Identifier: Apache-2.0
// Moves a flow's bytes through the half of a module: each run continues everything possible, whatever event
// caused it. linked_flow.h decides what follows when the module steps aside or gives up the flow.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "proxy/flows/lan_side.h"
#include "proxy/flows/module_host.h"
#include "proxy/link/session.h"
#include "proxy/modules/modules.h"

namespace longhaul::flows {

class ModulePump {
 public:
  // Called when the module steps aside, and when it reports why it cannot optimise fully.
  using TellReason = std::function<void(FlowRecord&, Reason)>;

  ModulePump(std::unique_ptr<modules::Module> half, LanSide& lan, link::Stream& stream,
             std::shared_ptr<modules::Memory> memory, TellReason tell)
      : host_(std::move(half), stream, std::move(memory)),
        lan_(lan),
        timer_(lan.executor()),
        tell_(std::move(tell)) {}

  ModuleHost& host() { return host_; }
  const ModuleHost& host() const { return host_; }

  // A SOCKS client must receive the proxy's reply first.
  enum class ToClient : std::uint8_t { waits, open };
  // Returns true if the module ran, so that its stream may have data to send.
  bool run(const link::Session& session, const link::Token& session_id, ToClient to_client);
  // The socket was reset: the module may have promises to keep, so it decides when the other end is reset.
  void lose_lan();
  bool lan_lost() const { return lan_lost_; }
  // The server was connected again; the old connection is forgotten.
  void use_new_lan() {
    lan_lost_ = false;
    host_.redialled();
  }

  // Copies the module's counters and reason into the record.
  void report(FlowRecord& record);
  // Call when it has stepped aside in both directions.
  void report_end(FlowRecord& record);
  // Directions that the module has left since the last call: the plain pump takes them over.
  struct Left {
    bool up = false, down = false;
  };
  Left newly_left();

  // Calls `wake` at the module's next deadline, unless an earlier call is already scheduled.
  template <class Wake>
  void arm(Wake wake) {
    auto at = host_.next_timeout();
    if (!at || (timer_at_ && *timer_at_ <= *at)) return;
    // The module has just run, so a deadline in the past was already reported to it.
    at = std::max(*at, link::Clock::now() + std::chrono::milliseconds(1));
    timer_at_ = at;
    timer_.expires_at(*at);
    timer_.async_wait(std::move(wake));
  }
  void on_timer() { timer_at_.reset(); }

 private:
  bool deliver(std::size_t& bytes_left);
  bool read(int& reads_left);

  ModuleHost host_;
  LanSide& lan_;
  boost::asio::steady_timer timer_;
  std::optional<link::TimePoint> timer_at_;
  TellReason tell_;
  Reason told_ = reasons::optimised;
  Left left_;  // directions that the plain pumps have
  bool lan_lost_ = false;
};

}  // namespace longhaul::flows
