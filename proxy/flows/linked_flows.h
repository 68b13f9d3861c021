// SPDX-License-Identifier: Apache-2.0
// The live flows over links, of both sides' clients: owns them, and ends their records with them.
// near_flows.h and far_flows.h begin them.
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
  // All outlive this object.
  LinkedFlows(FlowTable& table, Admission& admission, Doubt& doubt)
      : table_(table), admission_(admission), doubt_(doubt) {}

  // Not started yet. With its end, the record is removed.
  LinkedFlow& add(boost::asio::ip::tcp::socket socket, link::PeerLink& link, link::Stream& stream,
                  FlowRecord& record);
  // Null: it has ended.
  LinkedFlow* find(FlowId id) const;
  // After LinkedFlow::take_back(): the record stays, for the flow continues outside the link.
  void taken_back(FlowId id) { flows_.erase(id); }
  // For the halves of modules that flows use.
  LinkedFlow::TellReason tell_reason();
  // Promises between these may be lost with the peer, until the flow's module steps aside or the flow ends.
  void enter_doubt(LinkedFlow& flow, const modules::Ends& ends);
  // Every flow is reset.
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
