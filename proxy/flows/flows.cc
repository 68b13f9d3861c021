// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/flows.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "codecs/work.h"
#include "proxy/flows/flows_parts.h"
#include "proxy/flows/recognition.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
namespace {

// Beyond this number a flow begins without a module, so that silent connections cannot accumulate here
// without limit.
constexpr std::size_t kMostRecognising = 1024;

}  // namespace

Flows::Flows(asio::io_context& io, const config::Config& config, config::Features& features, FlowTable& table,
             Dialer& dialer, std::vector<std::unique_ptr<link::PeerLink>>& links, modules::List modules)
    : io_(io),
      config_(config),
      features_(features),
      table_(table),
      dialer_(dialer),
      links_(links),
      modules_(modules),
      sources_(config.limits),
      sweeps_(io, linked_),
      doubt_([this](const link::PeerLink& link) {
        return link.perhaps_gone() || sweeps_.under_way(Sweeps::Kind::peer_gone, link);
      }),
      spares_(io, dialer) {}

Flows::~Flows() = default;

const config::Peer* Flows::peer_of(const Destination& destination) const {
  const auto address = address_of(destination);
  return address ? config::peer_for(config_, *address) : config::peer_for_name(config_, destination.host);
}

bool Flows::may_leave(const asio::ip::address& client, const Destination& destination) const {
  const auto policy =
      config::policy_for(config_, features_, client, address_of(destination), destination.port);
  return closed_ == Closed::lifted || !config::is_closed(config_, policy, peer_of(destination));
}

Decision Flows::decide(const asio::ip::address& client, const Destination& destination) const {
  auto address = address_of(destination);
  Decision decision{.policy = config::policy_for(config_, features_, client, address, destination.port)};
  const config::Peer* peer = peer_of(destination);
  if (peer) decision.peer = peer->name;
  const bool closed = closed_ == Closed::enforced && config::is_closed(config_, decision.policy, peer);
  auto past = [&](Reason reason) {
    decision.reason = reason;
    decision.refused = closed;
    return decision;
  };
  if (decision.policy.features.transport == config::Transport::off) return past(reasons::transport_off);
  if (!peer) return past(reasons::no_peer_for_network);
  auto link =
      std::find_if(links_.begin(), links_.end(), [&](const auto& l) { return l->peer().name == peer->name; });
  if (link == links_.end()) return past(reasons::link_never_up);
  if (Reason reason = reason_of((*link)->state()); reason != reasons::optimised) return past(reason);
  // Only features that both sides allow are in force, so the peer can switch the transport off, too.
  if ((*link)->session_if_any()->incoming().peer_allowed().transport == config::Transport::off)
    return past(reasons::transport_off);
  // A flow that may not bypass the link gains nothing by that: the far side is asked again. The same holds while the
  // client must be told of lost writes: over the link the module can report them even in signed or encrypted sessions.
  auto known = closed ? unreachable_.end() : unreachable_.find(destination.to_text());
  if (known != unreachable_.end() && std::chrono::steady_clock::now() < known->second.until &&
      !why_guarded(client, destination))
    return past(known->second.reason);
  if (table_.live().size() >= config_.limits.flows) return past(reasons::flow_limit);
  if (sources_.at_limit(client)) return past(reasons::source_limit);
  if ((*link)->memory_used_up()) return past(reasons::memory_limit);
  decision.link = link->get();
  return decision;
}

void Flows::set_closed(Closed closed) {
  closed_ = closed;
  spares_.start_anew();
  for (auto& [id, signal] : relayed_) {
    const auto found = table_.live().find(id);
    if (found == table_.live().end()) continue;
    const FlowRecord& record = found->second;
    if (!may_leave(record.client.address(), record.destination))
      signal.emit(asio::cancellation_type::terminal);
  }
}

bool Flows::has_room(const asio::ip::address& client) const {
  return table_.live().size() < 2 * std::size_t{config_.limits.flows} && !sources_.at_limit(client, 2);
}

// All clients of this site share one part.
std::string Flows::sharer_of(const FlowRecord& record) {
  return record.far_side ? record.peer : std::string();
}

FlowRecord& Flows::enter(FlowRecord record) {
  FlowRecord& entered = table_.add(std::move(record));
  shares_.add(sharer_of(entered));
  tell_crowded(!entered.far_side && sources_.add(entered.client.address()));
  return entered;
}

void Flows::remove(FlowId id, FlowTable::End end) {
  const FlowRecord& record = table_.live().at(id);
  const bool changed = !record.far_side && sources_.remove(record.client.address());
  shares_.remove(sharer_of(record));
  table_.remove(id, end);
  tell_crowded(changed);
}

void Flows::limits_changed() {
  spares_.start_anew();
  sources_.limits_changed();
  tell_crowded(true);
}

void Flows::tell_crowded(bool sources_changed) {
  const std::size_t live = table_.live().size(), most = config_.limits.flows;
  const bool is_full = live >= (is_full_ ? most - most / 8 : most);
  const bool changed = is_full != std::exchange(is_full_, is_full);
  if ((changed || sources_changed) && on_crowded)
    on_crowded({.everyone = is_full, .sources = sources_.crowded()});
}

FlowRecord& Flows::add_record(const Accepted& accepted, const Decision& decision) {
  FlowRecord record{.client = accepted.client,
                    .destination = accepted.destination,
                    .origin = accepted.origin,
                    .peer = decision.link ? decision.peer : std::string(),
                    .reason = decision.reason,
                    .features = decision.policy.features,
                    .started = std::chrono::steady_clock::now()};
  FlowRecord& added = enter(std::move(record));
  if (log::enabled(log::Level::debug)) {
    log::debug("flow_start", {{"flow", added.id},
                              {"client", accepted.client.address().to_string()},
                              {"to", accepted.destination.to_text()},
                              {"peer", added.peer},
                              {"reason", decision.reason->code}});
  }
  return added;
}

void Flows::start(Accepted accepted) {
  Decision decision = decide(accepted.client.address(), accepted.destination);
  if (!decision.link) {
    FlowRecord& record = add_record(accepted, decision);
    return start_past(std::move(accepted), record, decision.refused);
  }
  const modules::Listed* module = module_at(modules_, config_.modules, accepted.destination.port);
  // A client that must first learn whether the server is reachable sends nothing before.
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
asio::awaitable<void> Flows::start_recognised(Accepted accepted, Candidates candidates) {
  ++recognising_;
  const modules::Listed* module = co_await recognise(accepted.socket, std::move(candidates));
  --recognising_;
  Decision decision = decide(accepted.client.address(), accepted.destination);
  if (decision.link) {
    start_linked(std::move(accepted), std::move(decision), module);
  } else {
    FlowRecord& record = add_record(accepted, decision);
    start_past(std::move(accepted), record, decision.refused);
  }
}

LinkedFlow::TellReason Flows::tell_reason() {
  return [this](FlowRecord& record, Reason reason) {
    table_.give_reason(record, reason);
    log_reason(record);
    if (const auto flow = linked_.find(record.id); flow != linked_.end() && record.module->steps_aside)
      leave_doubt(*flow->second);
  };
}

// Only where the module knows more than the reason says.
void Flows::log_reason(const FlowRecord& record) {
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

void Flows::own(std::unique_ptr<LinkedFlow> flow) {
  FlowId id = flow->record().id;
  linked_[id] = std::move(flow);
}

LinkedFlow::OnEnd Flows::forget() {
  return [this](LinkedFlow& flow, LinkedFlow::End end) {
    FlowRecord& record = flow.record();
    bool was_reset = end == LinkedFlow::End::reset;
    log_end(record, was_reset ? "reset" : "closed");
    leave_doubt(flow);
    FlowId id = record.id;
    linked_.erase(id);
    remove(id, was_reset ? FlowTable::End::reset : FlowTable::End::closed);
  };
}

void Flows::apply_features(const link::PeerLink* link) {
  spares_.start_anew();
  for (const modules::Listed& module : modules_) module.instance->forget_sessions();
  sweeps_.begin(Sweeps::Kind::apply_features, link,
                [this](FlowId, LinkedFlow& flow) { apply_features_to(flow); });
}

void Flows::apply_features_to(LinkedFlow& flow) {
  FlowRecord& record = flow.record();
  if (record.far_side || !flow.stream() || !flow.link().session_if_any()) return;
  count_work(Sweeps::kWorkPerVisit);
  link::PeerLink& link = flow.link();
  const auto policy = config::policy_for(config_, features_, record.client.address(),
                                         address_of(record.destination), record.destination.port);
  config::Features features = config::meet(policy.features, link.session().incoming().peer_allowed());
  // A flow's path was decided at its start.
  features.transport = record.features.transport;
  if (flow.is_private()) features.dedup_memory = features.dedup_disk = false;
  record.features = features;
  link.session().change_features(flow.stream()->id(), features);
  flow.features_changed();
  link.kick();
}

void Flows::cut_all() {
  spares_.start_anew();
  for (auto& [id, flow] : linked_) flow->cut(flow->record().far_side ? ResetBy::far : ResetBy::near);
}

}  // namespace longhaul::flows
