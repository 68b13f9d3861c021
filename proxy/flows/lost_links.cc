// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/lost_links.h"

#include "codecs/work.h"
#include "proxy/log/log.h"

namespace longhaul::flows {

LostLinks::LostLinks(modules::List modules, FlowTable& table, const Paths& paths, LinkedFlows& linked,
                     Sweeps& sweeps, BypassingFlows& bypassing, std::function<void()> on_settled)
    : modules_(modules),
      table_(table),
      paths_(paths),
      linked_(linked),
      sweeps_(sweeps),
      bypassing_(bypassing),
      on_settled_(std::move(on_settled)) {}

void LostLinks::on_link_lost(const link::PeerLink& link) {
  for (const modules::Listed& module : modules_) module.instance->forget_sessions();
  sweeps_.begin(Sweeps::Kind::decide_anew, &link, [this](FlowId id, LinkedFlow& flow) {
    if (flow.unanswered()) decide_anew(id, flow);
  });
}

bool LostLinks::decides_anew(const link::PeerLink& link) const {
  return sweeps_.under_way(Sweeps::Kind::decide_anew, link);
}

// A flow that began shortly before the link was known to be lost. Stream::take_back() reports whether the
// server can have received a byte of it. If so, the flow waits for the link like every live flow: sending its
// first bytes on a second connection could repeat a request, and module contracts allow a reset, but never a
// repetition. A connection without any bytes, which a live peer may have made to the server, does no harm.
void LostLinks::decide_anew(FlowId id, LinkedFlow& flow) {
  count_work(Sweeps::kWorkPerVisit);
  FlowRecord& record = flow.record();
  const Decision decision = paths_.decide(record.client.address(), record.destination);
  if (decision.link) return;
  auto client = flow.take_back();
  if (!client) return;
  linked_.taken_back(id);
  table_.leave_link(record, decision.reason);
  log::debug("flow_taken_back", {{"flow", id}, {"reason", decision.reason->code}});
  Accepted accepted{.socket = std::move(client->socket),
                    .client = record.client,
                    .destination = record.destination,
                    .origin = record.origin,
                    .answer = std::move(client->reply)};
  // The peer may hold a connection to the server under the client's own port.
  accepted.client.port(0);
  bypassing_.start(std::move(accepted), record, decision.refused, std::move(client->bytes));
}

// A client that is reset at once connects again, bypassing the link; otherwise it would wait for a minute and
// then be reset. Answered flows do wait for that minute: they have more to lose if the peer turns out to be
// alive. Their modules' outstanding promises are recorded now: their clients may return bypassing the peer.
void LostLinks::on_peer_gone(const link::PeerLink& link) {
  const auto visit = [](FlowId, LinkedFlow& flow) {
    if (!flow.unanswered() && !flow.record().far_side) return;
    count_work(Sweeps::kWorkPerVisit);
    if (flow.unanswered()) {
      flow.cut(ResetBy::link);
    } else {
      flow.suspect_peer();
    }
  };
  sweeps_.begin(Sweeps::Kind::peer_gone, &link, visit, on_settled_);
}

}  // namespace longhaul::flows
