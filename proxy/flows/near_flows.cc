// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/near_flows.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "proxy/flows/ends.h"
#include "proxy/flows/link_reasons.h"
#include "proxy/flows/module_agreement.h"
#include "proxy/log/log.h"

namespace longhaul::flows {
namespace asio = boost::asio;
namespace {

// At this number, a flow starts without a module, so that silent connections cannot accumulate without limit.
constexpr std::size_t kMostRecognising = 1024;

}  // namespace

NearFlows::NearFlows(asio::io_context& io, const config::Config& config, modules::List modules,
                     FlowTable& table, Admission& admission, const Paths& paths, const ClientLosses& losses,
                     LinkedFlows& linked, BypassingFlows& bypassing, OnUnreachable on_unreachable)
    : io_(io),
      config_(config),
      modules_(modules),
      table_(table),
      admission_(admission),
      paths_(paths),
      losses_(losses),
      linked_(linked),
      bypassing_(bypassing),
      on_unreachable_(std::move(on_unreachable)) {}

FlowRecord& NearFlows::add_record(const Accepted& accepted, const Decision& decision) {
  FlowRecord record{.client = accepted.client,
                    .destination = accepted.destination,
                    .origin = accepted.origin,
                    .peer = decision.link ? decision.peer : std::string(),
                    .reason = decision.reason,
                    .features = decision.policy.features,
                    .started = std::chrono::steady_clock::now()};
  FlowRecord& added = admission_.enter(std::move(record));
  if (log::enabled(log::Level::debug)) {
    log::debug("flow_start", {{"flow", added.id},
                              {"client", accepted.client.address().to_string()},
                              {"to", accepted.destination.to_text()},
                              {"peer", added.peer},
                              {"reason", decision.reason->code}});
  }
  return added;
}

void NearFlows::start(Accepted accepted) {
  Decision decision = paths_.decide(accepted.client.address(), accepted.destination);
  if (!decision.link) return start_bypassing(std::move(accepted), decision);
  const modules::Listed* module = module_at(modules_, config_.modules, accepted.destination.port);
  // A client that expects the proxy's reply sends nothing before it.
  if (!module && !accepted.answer && recognising_ < kMostRecognising) {
    auto candidates = recognisers(modules_, config_.modules, decision.policy.features);
    std::erase_if(candidates, [&](const modules::Listed* each) {
      return !decision.link->peer_has_module(each->descriptor.name, each->descriptor.version);
    });
    if (!candidates.empty()) {
      asio::co_spawn(io_, start_recognised(std::move(accepted), std::move(candidates)), asio::detached);
      return;
    }
  }
  start_linked(std::move(accepted), std::move(decision), module);
}

// Decided again after that time: the link may be lost by then.
asio::awaitable<void> NearFlows::start_recognised(Accepted accepted, Candidates candidates) {
  ++recognising_;
  const modules::Listed* module = co_await recognise(accepted.socket, std::move(candidates));
  --recognising_;
  Decision decision = paths_.decide(accepted.client.address(), accepted.destination);
  if (decision.link) {
    start_linked(std::move(accepted), std::move(decision), module);
  } else {
    start_bypassing(std::move(accepted), decision);
  }
}

void NearFlows::start_bypassing(Accepted accepted, const Decision& decision) {
  FlowRecord& record = add_record(accepted, decision);
  bypassing_.start(std::move(accepted), record, decision.refused);
}

void NearFlows::start_linked(Accepted accepted, Decision decision, const modules::Listed* module) {
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
  const bool has_peer = module && link.peer_has_module(module->descriptor.name, module->descriptor.version);
  const ModuleAgreement agreed =
      agree_on(module, has_peer ? AtPeer::present : AtPeer::absent, decision.policy.features, features);
  if (agreed.why_none) table_.give_reason(record, *agreed.why_none);
  module = agreed.module;
  // Without the module, lost writes of another connection could not be reported to the client.
  if (!module)
    if (const auto why = losses_.why_guarded(record.client.address(), record.destination))
      return bypassing_.start_guarded(std::move(accepted), record, *why);
  if (module) {
    request.module = module->descriptor.name;
    request.module_version = module->descriptor.version;
  }
  link::Stream& stream = link.session().open(std::move(request), link::Clock::now());
  LinkedFlow& started = linked_.add(std::move(accepted.socket), link, stream, record);
  const auto hold_unguarded = [this, &started] {
    started.unguarded = losses_.unguarded(started.record().client.address(), started.record().destination);
  };
  if (!module) hold_unguarded();
  if (module) {
    started.on_unread = hold_unguarded;
    started.use_module(*module,
                       module->instance->make_near(ends_of(record.client.address(), record.destination)),
                       linked_.tell_reason());
  }
  // While a response of the peer is overdue, the client's bytes stay here: if the link turns out to be lost,
  // the flow bypasses it; otherwise this costs a round trip.
  const bool at_once = features.fast_connect && !link.session().liveness().overdue(link::Clock::now());
  started.start_near(at_once ? LinkedFlow::Begin::at_once : LinkedFlow::Begin::after_answer,
                     {std::move(accepted.answer),
                      [this](LinkedFlow& of, const link::OpenAnswer& answer) { on_answer(of, answer); }});
}

void NearFlows::on_answer(LinkedFlow& flow, const link::OpenAnswer& answer) {
  FlowRecord& record = flow.record();
  if (answer.outcome == ConnectOutcome::connected) {
    if (answer.source_fallback) table_.give_reason(record, reasons::source_fallback);
    return;
  }
  table_.give_reason(record, reason_of(answer.outcome));
  if (paths_.may_leave(record.client.address(), record.destination)) on_unreachable_(record);
}

}  // namespace longhaul::flows
