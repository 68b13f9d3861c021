// SPDX-License-Identifier: Apache-2.0
// Moves a flow's bytes through the half of a module: whatever woke the flow, it continues everything
// possible. linked_flow.h decides what follows when the module steps aside, or gives up the flow.
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

  // A SOCKS client hears first whether the server was reached.
  enum class ToClient : std::uint8_t { waits, open };
  // True: the module ran, so its stream may have something to send.
  bool run(const link::Session& session, const link::Token& session_id, ToClient to_client);
  // The socket was reset: the module may have promises to keep, and decides when the other end must be reset.
  void lose_lan();
  bool lan_lost() const { return lan_lost_; }
  // The server is connected again: as if the old connection had never been.
  void use_new_lan() {
    lan_lost_ = false;
    host_.redialled();
  }

  // Counters and reason of the module.
  void report(FlowRecord& record);
  // It has stepped aside in both directions.
  void report_end(FlowRecord& record);
  // Directions that the module has left since the last call: the plain pump takes them over.
  struct Left {
    bool up = false, down = false;
  };
  Left newly_left();

  // Calls `wake` at the module's next deadline, unless it will be called before that anyway.
  template <class Wake>
  void arm(Wake wake) {
    auto at = host_.next_timeout();
    if (!at || (timer_at_ && *timer_at_ <= *at)) return;
    // A deadline that has passed was reported to the module a moment ago.
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
  Left left_;  // as in the plain pumps
  bool lan_lost_ = false;
};

}  // namespace longhaul::flows
