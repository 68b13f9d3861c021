// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/linked_flows.h"

#include "proxy/flows/flow_end_log.h"
#include "proxy/log/log.h"

namespace longhaul::flows {
namespace asio = boost::asio;

LinkedFlow& LinkedFlows::add(asio::ip::tcp::socket socket, link::PeerLink& link, link::Stream& stream,
                             FlowRecord& record) {
  auto on_end = [this](LinkedFlow& flow, LinkedFlow::End how) {
    const auto end = how == LinkedFlow::End::reset ? FlowTable::End::reset : FlowTable::End::closed;
    const FlowId id = flow.record().id;
    log_end(flow.record(), end);
    leave_doubt(flow);
    flows_.erase(id);
    admission_.remove(id, end);
  };
  auto flow = std::make_unique<LinkedFlow>(std::move(socket), link, stream, record, std::move(on_end));
  return *(flows_[record.id] = std::move(flow));
}

LinkedFlow* LinkedFlows::find(FlowId id) const {
  const auto found = flows_.find(id);
  return found == flows_.end() ? nullptr : found->second.get();
}

LinkedFlow::TellReason LinkedFlows::tell_reason() {
  return [this](FlowRecord& record, Reason reason) {
    table_.give_reason(record, reason);
    log_reason(record);
    if (LinkedFlow* flow = find(record.id); flow && record.module->steps_aside) leave_doubt(*flow);
  };
}

// Only if the module can give more detail than the reason.
void LinkedFlows::log_reason(const FlowRecord& record) {
  if (record.reason == reasons::optimised || record.module->detail.empty()) return;
  const std::string client = record.client.address().to_string();
  if (const auto left_out = reason_lines_.may_write(client, std::chrono::steady_clock::now()))
    log::warn("flow_reason", {{"flow", record.id},
                              {"client", client},
                              {"to", record.destination.to_text()},
                              {"reason", record.reason->code},
                              {"detail", record.module->detail},
                              {"not_logged", *left_out}});
}

void LinkedFlows::enter_doubt(LinkedFlow& flow, const modules::Ends& ends) {
  flow.doubted = ends;
  doubt_.add(ends, flow.link());
}

// Called once: when the flow's module has stepped aside, or else when the flow ends.
void LinkedFlows::leave_doubt(LinkedFlow& flow) {
  if (flow.doubted) doubt_.remove(*flow.doubted, flow.link());
  flow.doubted.reset();
}

void LinkedFlows::cut_all() {
  for (auto& [id, flow] : flows_) flow->cut(flow->record().far_side ? ResetBy::far : ResetBy::near);
}

}  // namespace longhaul::flows
