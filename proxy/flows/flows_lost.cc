// SPDX-License-Identifier: Apache-2.0
// What happens to flows when the link or the peer is lost: decided again, reset, or in doubt. Flows take
// turns (sweeps.h).
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "codecs/work.h"
#include "proxy/flows/ends.h"
#include "proxy/flows/flows_parts.h"
#include "proxy/flows/recognition.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using namespace std::chrono_literals;
namespace {

// A server is the same on ports 445 and 139.
modules::Ends at_any_port(modules::Ends ends) {
  ends.server_port = 0;
  return ends;
}

}  // namespace

void Flows::on_link_lost(const link::PeerLink& link) {
  for (const modules::Listed& module : modules_) module.instance->forget_sessions();
  sweeps_.begin(Sweeps::Kind::decide_anew, &link, [this](FlowId id, LinkedFlow& flow) {
    if (flow.unanswered()) decide_anew(id, flow);
  });
}

bool Flows::decides_anew(const link::PeerLink& link) const {
  return sweeps_.under_way(Sweeps::Kind::decide_anew, link);
}

// A flow that began shortly before the link was known to be lost. Stream::take_back() knows whether the
// server can have received a byte of it. If so, the flow waits for the link like every live one: its first
// bytes on a second connection could be a second order, and contracts allow a reset, but never a second
// attempt. A connection to the server without a byte, which a live peer may have made, is no attempt.
void Flows::decide_anew(FlowId id, LinkedFlow& flow) {
  count_work(Sweeps::kWorkPerVisit);
  FlowRecord& record = flow.record();
  const Decision decision = decide(record.client.address(), record.destination);
  if (decision.link) return;
  auto client = flow.take_back();
  if (!client) return;
  linked_.erase(id);
  table_.leave_link(record, decision.reason);
  log::debug("flow_taken_back", {{"flow", id}, {"reason", decision.reason->code}});
  Accepted accepted{.socket = std::move(client->socket),
                    .client = record.client,
                    .destination = record.destination,
                    .origin = record.origin,
                    .answer = std::move(client->reply)};
  // The peer may hold a connection to the server under the client's own port.
  accepted.client.port(0);
  start_past(std::move(accepted), record, decision.refused, std::move(client->bytes));
}

// A client that is reset at once tries again, bypassing the link; one that waits would wait for a minute, and
// then be reset. Flows that were answered keep that minute: they have more to lose, if the suspicion is
// wrong. Their modules' outstanding promises are recorded now: their clients may return bypassing the peer.
void Flows::on_peer_gone(const link::PeerLink& link) {
  const auto visit = [](FlowId, LinkedFlow& flow) {
    if (!flow.unanswered() && !flow.record().far_side) return;
    count_work(Sweeps::kWorkPerVisit);
    if (flow.unanswered()) {
      flow.cut(ResetBy::link);
    } else {
      flow.suspect_peer();
    }
  };
  sweeps_.begin(Sweeps::Kind::peer_gone, &link, visit, [this] {
    if (on_doubt_settled) on_doubt_settled();
  });
}

void Flows::run_modules() {
  sweeps_.begin(Sweeps::Kind::run_modules, nullptr, [](FlowId, LinkedFlow& flow) {
    if (!flow.record().module || flow.record().far_side) return;
    count_work(Sweeps::kWorkPerVisit);
    flow.features_changed();
  });
}

// ---- clients in doubt

void Flows::enter_doubt(LinkedFlow& flow, const modules::Ends& ends) {
  flow.doubted = at_any_port(ends);
  doubt_.add(*flow.doubted, flow.link());
}

// Once: when its module has stepped aside, or else when it ends.
void Flows::leave_doubt(LinkedFlow& flow) {
  if (flow.doubted) doubt_.remove(*flow.doubted, flow.link());
  flow.doubted.reset();
}

// Seconds at most: then the peer has ended, or is heard again.
asio::awaitable<void> Flows::wait_while_in_doubt(const FlowRecord& record) {
  const auto may_be = [&](const modules::Listed& module) {
    return may_be_at(module, config_.modules, record.destination.port);
  };
  if (std::ranges::none_of(modules_, may_be)) co_return;
  const modules::Ends ends = at_any_port(ends_of(record.client.address(), record.destination));
  asio::steady_timer timer(io_);
  boost::system::error_code cancelled;
  while (!cancelled && doubt_.about(ends)) {
    timer.expires_after(100ms);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
}

}  // namespace longhaul::flows
