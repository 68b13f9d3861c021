// SPDX-License-Identifier: Apache-2.0
// Flows of the peers' clients: decides whether one may begin, and connects its server.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string_view>

#include "proxy/flows/admission.h"
#include "proxy/flows/client_losses.h"
#include "proxy/flows/dialer.h"
#include "proxy/flows/linked_flows.h"
#include "proxy/flows/own_addresses.h"
#include "proxy/flows/paths.h"
#include "proxy/flows/spares.h"
#include "proxy/log/line_limit.h"

namespace longhaul::flows {

class FarFlows {
 public:
  // All references outlive this object.
  FarFlows(boost::asio::io_context& io, const config::Config& config, const config::Features& features,
           modules::List modules, FlowTable& table, Dialer& dialer, Admission& admission, const Paths& paths,
           const ClientLosses& losses, LinkedFlows& linked);

  void on_opened(link::PeerLink& link, link::Stream& stream);
  // Why a flow that the peer would open for this client would not be dialled here; `optimised` if it would
  // be.
  Reason decide(const link::PeerLink& link, const boost::asio::ip::address& client,
                const Destination& destination);
  // Connections to servers that are made before the peers' clients need them.
  Spares& spares() { return spares_; }
  const Spares& spares() const { return spares_; }

 private:
  Reason admit(const link::PeerLink& link, const link::OpenRequest& request);
  bool peer_speaks_for(const link::PeerLink& link, const boost::asio::ip::address& client);
  void refuse_opened(link::PeerLink& link, link::Stream& stream, FlowRecord& record);
  void log_refused(const FlowRecord& record, std::string_view remedy);
  void on_not_dialled(FlowRecord& record, const Dialled& dialled, bool would_leave_again);
  // Null if the near side gave up the flow meanwhile.
  LinkedFlow* open_flow(FlowId id) const;
  // How the flow's protocol uses connections that were made ahead; null if this flow may not use any.
  const modules::ConnectAhead* connects_ahead(LinkedFlow& flow);
  boost::asio::awaitable<void> serve(FlowId id, DialRequest request,
                                     std::shared_ptr<const bool> leaves_again);
  boost::asio::awaitable<void> serve_again(FlowId id, DialRequest request);

  boost::asio::io_context& io_;
  const config::Config& config_;
  const config::Features& features_;
  modules::List modules_;
  FlowTable& table_;
  Dialer& dialer_;
  Admission& admission_;
  const Paths& paths_;
  const ClientLosses& losses_;
  LinkedFlows& linked_;
  OwnAddresses own_;
  log::LineLimit peer_refusals_{1};
  Spares spares_;
};

}  // namespace longhaul::flows
