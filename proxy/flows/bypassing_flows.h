// SPDX-License-Identifier: Apache-2.0
// Flows outside the link: relays them unchanged or through a module's guard, or refuses them.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "proxy/flows/admission.h"
#include "proxy/flows/client_losses.h"
#include "proxy/flows/dialer.h"
#include "proxy/flows/doubt.h"
#include "proxy/flows/paths.h"
#include "proxy/flows/relay.h"

namespace longhaul::flows {

class BypassingFlows {
 public:
  // Called if the server could not be connected.
  using OnNotConnected = std::function<void(const FlowRecord&)>;
  // All references outlive this object.
  BypassingFlows(boost::asio::io_context& io, FlowTable& table, Dialer& dialer, Admission& admission,
                 const Paths& paths, const ClientLosses& losses, const Doubt& doubt,
                 OnNotConnected on_not_connected);

  // Starts a flow of this site's client; its record is removed when it ends. `refused`: because of fail =
  // closed. `first`: bytes already read from the client.
  void start(Accepted accepted, FlowRecord& record, bool refused, Buffer first = {});
  // The same for a flow that would have used the link, but needs a guard.
  void start_guarded(Accepted accepted, FlowRecord& record, Reason why);
  // fail = closed was enforced or lifted: flows that may no longer bypass the link are reset.
  void reset_disallowed();

 private:
  boost::asio::awaitable<void> relay(Accepted accepted, FlowRecord& record, config::Source source,
                                     Buffer first);
  boost::asio::awaitable<std::optional<RelayEnd>> guard(boost::asio::ip::tcp::socket& client,
                                                        boost::asio::ip::tcp::socket& server,
                                                        FlowRecord& record, Buffer& first,
                                                        std::vector<std::shared_ptr<void>>& unguarded);
  boost::asio::awaitable<void> wait_while_in_doubt(const FlowRecord& record);

  boost::asio::io_context& io_;
  FlowTable& table_;
  Dialer& dialer_;
  Admission& admission_;
  const Paths& paths_;
  const ClientLosses& losses_;
  const Doubt& doubt_;
  OnNotConnected on_not_connected_;
  Relay relay_;
  std::unordered_map<FlowId, boost::asio::cancellation_signal> relayed_;
};

}  // namespace longhaul::flows
