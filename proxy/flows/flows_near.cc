// SPDX-License-Identifier: Apache-2.0
// Flows of this site's clients over the link: how they begin, and the effects of the peer's answer.
#include "proxy/flows/ends.h"
#include "proxy/flows/flows_parts.h"

namespace longhaul::flows {
using namespace std::chrono_literals;
namespace {

// The same as the packet rules' own memory, so that both modes behave alike.
constexpr auto kRemembered = 10s;
constexpr std::size_t kRememberedMost = 4096;

}  // namespace

void Flows::start_linked(Accepted accepted, Decision decision, const modules::Listed* module) {
  FlowRecord& record = add_record(accepted, decision);
  link::PeerLink& link = *decision.link;
  config::Features features =
      config::meet(decision.policy.features, link.session().incoming().peer_allowed());
  record.features = features;
  link::OpenRequest request{
      .destination = accepted.destination,
      .client = accepted.client,
      .source = accepted.origin == Origin::tproxy ? config_.intercept.source : config::Source::proxy,
      .features = features};
  module = agree_on(module, decision.policy.features, record, link);
  // Without the module nothing would tell the client of writes that it has lost on another connection.
  if (!module)
    if (const auto why = why_guarded(record.client.address(), record.destination))
      return start_guarded(std::move(accepted), record, *why);
  if (module) {
    request.module = module->descriptor.name;
    request.module_version = module->descriptor.version;
  }
  link::Stream& stream = link.session().open(std::move(request), link::Clock::now());
  auto flow = std::make_unique<LinkedFlow>(std::move(accepted.socket), link, stream, record, forget());
  LinkedFlow& started = *flow;
  own(std::move(flow));
  if (!module) started.unguarded = unguarded(record);
  if (module) {
    started.on_unread = [this, &started] { started.unguarded = unguarded(started.record()); };
    started.use_module(*module,
                       module->instance->make_near(ends_of(record.client.address(), record.destination)),
                       tell_reason());
  }
  // While an answer of the peer is overdue the client's bytes stay here: if the link turns out to be lost the
  // flow bypasses it, and otherwise it has lost a round trip.
  const bool at_once = features.fast_connect && !link.session().liveness().overdue(link::Clock::now());
  started.start_near(at_once ? LinkedFlow::Begin::at_once : LinkedFlow::Begin::after_answer,
                     {std::move(accepted.answer),
                      [this](LinkedFlow& of, const link::OpenAnswer& answer) { on_answer(of, answer); }});
}

// Both sides run it, or neither does: the peer has announced its modules.
const modules::Listed* Flows::agree_on(const modules::Listed* module, const config::Features& wanted,
                                       FlowRecord& record, const link::PeerLink& link) {
  const auto is_on = [&](const config::Features& features) {
    return features.modules.value(module->descriptor.name) != 0;
  };
  if (!module || !is_on(wanted)) return nullptr;
  // A peer that does not have the module does not know its features either: that is not its choice.
  if (!link.peer_has_module(module->descriptor.name, module->descriptor.version)) {
    table_.give_reason(record, reasons::module_not_at_peer);
    return nullptr;
  }
  if (!is_on(record.features)) return nullptr;
  if (module->memory->is_short()) {
    table_.give_reason(record, reasons::memory_limit);
    return nullptr;
  }
  return module;
}

void Flows::on_answer(LinkedFlow& flow, const link::OpenAnswer& answer) {
  FlowRecord& record = flow.record();
  if (answer.outcome == ConnectOutcome::connected) {
    if (answer.source_fallback) table_.give_reason(record, reasons::source_fallback);
    return;
  }
  const Reason reason = reason_of(answer.outcome);
  table_.give_reason(record, reason);
  if (!may_leave(record.client.address(), record.destination)) return;
  auto now = std::chrono::steady_clock::now();
  if (unreachable_.size() >= kRememberedMost)
    std::erase_if(unreachable_, [&](const auto& entry) { return entry.second.until <= now; });
  if (unreachable_.size() < kRememberedMost)
    unreachable_[record.destination.to_text()] = {reason, now + kRemembered};
  tell_refused(record);
}

// The client was accepted before the server was asked; its next attempt must get the server's own answer.
void Flows::tell_refused(const FlowRecord& record) {
  if (record.origin == Origin::tproxy && on_server_refused && record.destination.host.empty())
    on_server_refused({record.destination.address, record.destination.port});
}

}  // namespace longhaul::flows
