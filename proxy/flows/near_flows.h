// SPDX-License-Identifier: Apache-2.0
// Starts the flows of this site's clients, over the link or bypassing it, and handles the far side's answer.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>

#include "proxy/flows/admission.h"
#include "proxy/flows/bypassing_flows.h"
#include "proxy/flows/client_losses.h"
#include "proxy/flows/linked_flows.h"
#include "proxy/flows/paths.h"
#include "proxy/flows/recognition.h"

namespace longhaul::flows {

class NearFlows {
 public:
  // The far side could not connect the server, so new flows to it may bypass the link; the record has the
  // reason.
  using OnUnreachable = std::function<void(const FlowRecord&)>;
  // All references outlive this object.
  NearFlows(boost::asio::io_context& io, const config::Config& config, modules::List modules,
            FlowTable& table, Admission& admission, const Paths& paths, const ClientLosses& losses,
            LinkedFlows& linked, BypassingFlows& bypassing, OnUnreachable on_unreachable);

  // Never fails, never blocks.
  void start(Accepted accepted);

 private:
  // `module`: for the flow's protocol; null if there is none.
  void start_linked(Accepted accepted, Decision decision, const modules::Listed* module);
  boost::asio::awaitable<void> start_recognised(Accepted accepted, Candidates candidates);
  void start_bypassing(Accepted accepted, const Decision& decision);
  FlowRecord& add_record(const Accepted& accepted, const Decision& decision);
  void on_answer(LinkedFlow& flow, const link::OpenAnswer& answer);

  boost::asio::io_context& io_;
  const config::Config& config_;
  modules::List modules_;
  FlowTable& table_;
  Admission& admission_;
  const Paths& paths_;
  const ClientLosses& losses_;
  LinkedFlows& linked_;
  BypassingFlows& bypassing_;
  OnUnreachable on_unreachable_;
  std::size_t recognising_ = 0;  // flows that wait for their first bytes
};

}  // namespace longhaul::flows
