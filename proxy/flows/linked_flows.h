// SPDX-License-Identifier: Apache-2.0
// Owns the live flows over links, of both sides' clients, and removes their records when they end.
// near_flows.h and far_flows.h start them.
#pragma once
#include <memory>

#include "proxy/flows/admission.h"
#include "proxy/flows/doubt.h"
#include "proxy/flows/linked_flow.h"
#include "proxy/flows/sweeps.h"
#include "proxy/log/line_limit.h"

namespace longhaul::flows {

class LinkedFlows {
 public:
  // All references outlive this object.
  LinkedFlows(FlowTable& table, Admission& admission, Doubt& doubt)
      : table_(table), admission_(admission), doubt_(doubt) {}

  // Adds a flow that is not started yet. The record is removed when the flow ends.
  LinkedFlow& add(boost::asio::ip::tcp::socket socket, link::PeerLink& link, link::Stream& stream,
                  FlowRecord& record);
  // Null if it has ended.
  LinkedFlow* find(FlowId id) const;
  // After LinkedFlow::take_back(): the record stays, because the flow continues outside the link.
  void taken_back(FlowId id) { flows_.erase(id); }
  // The callback for LinkedFlow::use_module().
  LinkedFlow::TellReason tell_reason();
  // Promises between these two would be lost with the peer, until the flow's module steps aside or the flow
  // ends.
  void enter_doubt(LinkedFlow& flow, const modules::Ends& ends);
  // Resets every flow.
  void cut_all();

  const Sweeps::FlowsById& by_id() const { return flows_; }

 private:
  void leave_doubt(LinkedFlow& flow);
  void log_reason(const FlowRecord& record);

  FlowTable& table_;
  Admission& admission_;
  Doubt& doubt_;
  log::LineLimit reason_lines_{50};
  Sweeps::FlowsById flows_;
};

}  // namespace longhaul::flows
