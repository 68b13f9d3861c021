// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/flows.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>

#include "proxy/flows/allow.h"
#include "proxy/flows/ends.h"
#include "proxy/flows/guarded_relay.h"
#include "proxy/log/log.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;
namespace {

// The same as the packet rules' own memory, so that both modes behave alike.
constexpr auto kRemembered = 10s;
constexpr std::size_t kRememberedMost = 4096;

// A server is the same at 445 and at 139.
modules::Ends ends_at_any_port(const FlowRecord& record) {
  modules::Ends ends = ends_of(record.client.address(), record.destination);
  ends.server_port = 0;
  return ends;
}

std::optional<asio::ip::address> address_of(const Destination& destination) {
  return destination.host.empty() ? std::optional(destination.address) : std::nullopt;
}

// What the near side is told about a flow that is not begun here for that reason.
ConnectOutcome outcome_of(Reason reason) {
  return reason == Reason::client_not_in_networks ? ConnectOutcome::client_not_allowed
                                                  : ConnectOutcome::failed;
}

// Why a flow that the far side did not connect was not optimised.
Reason reason_of(ConnectOutcome outcome) {
  switch (outcome) {
    case ConnectOutcome::not_allowed:
      return Reason::peer_refused;
    case ConnectOutcome::client_not_allowed:
      return Reason::client_not_in_networks;
    default:
      return Reason::destination_refused;
  }
}

Reason reason_of(link::LinkState state) {
  switch (state) {
    case link::LinkState::never_up:
      return Reason::link_never_up;
    case link::LinkState::up:
      return Reason::optimised;
    case link::LinkState::silent:
      return Reason::link_silent;
    case link::LinkState::down:
      return Reason::link_down;
  }
  return Reason::link_down;
}

void reset(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

// Who waits for an answer has one; everybody else understands a reset.
void refuse(Accepted& accepted) {
  if (!accepted.answer) return reset(accepted.socket);
  std::string reply = accepted.answer(ConnectOutcome::not_allowed);
  boost::system::error_code ignored;
  accepted.socket.non_blocking(true, ignored);  // a few bytes on a fresh connection: the kernel has room
  accepted.socket.write_some(asio::buffer(reply), ignored);
  accepted.socket.shutdown(tcp::socket::shutdown_send, ignored);
  accepted.socket.close(ignored);
}

void log_end(const FlowRecord& record, std::string_view how) {
  log::debug("flow_end", {{"flow", record.id},
                          {"how", how},
                          {"lan_in", record.bytes.lan_in},
                          {"lan_out", record.bytes.lan_out},
                          {"wan_in", record.bytes.wan_in},
                          {"wan_out", record.bytes.wan_out}});
}

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
      sources_(config.limits) {}

Flows::~Flows() = default;

const config::Peer* Flows::peer_of(const Destination& destination) const {
  const auto address = address_of(destination);
  return address ? config::peer_for(config_, *address) : config::peer_for_name(config_, destination.host);
}

// Past the link, as far as fail = closed is concerned.
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
  if (decision.policy.features.transport == config::Transport::off) return past(Reason::transport_off);
  if (!peer) return past(Reason::no_peer_for_network);
  auto link = std::find_if(links_.begin(), links_.end(), [&](const auto& l) { return l->peer().name == peer->name; });
  if (link == links_.end()) return past(Reason::link_never_up);
  if (Reason reason = reason_of((*link)->state()); reason != Reason::optimised) return past(reason);
  // What both sides allow is in force, so the peer can switch the transport off, too.
  if ((*link)->session_if_any()->peer_allowed().transport == config::Transport::off)
    return past(Reason::transport_off);
  // A flow that may not go past the link gains nothing by that: the far side is asked again.
  auto known = closed ? unreachable_.end() : unreachable_.find(destination.to_text());
  if (known != unreachable_.end() && std::chrono::steady_clock::now() < known->second.until)
    return past(known->second.reason);
  if (table_.live().size() >= config_.limits.flows) return past(Reason::flow_limit);
  if (sources_.at_limit(client)) return past(Reason::source_limit);
  if ((*link)->memory_used_up()) return past(Reason::memory_limit);
  decision.link = link->get();
  return decision;
}

void Flows::set_closed(Closed closed) {
  closed_ = closed;
  for (auto& [id, signal] : relayed_) {
    const auto found = table_.live().find(id);
    if (found == table_.live().end()) continue;
    const FlowRecord& record = found->second;
    if (!may_leave(record.client.address(), record.destination)) signal.emit(asio::cancellation_type::terminal);
  }
}

bool Flows::has_room(const asio::ip::address& client) const {
  return table_.live().size() < 2 * std::size_t{config_.limits.flows} && !sources_.at_limit(client, 2);
}

FlowRecord& Flows::enter(FlowRecord record) {
  FlowRecord& entered = table_.add(std::move(record));
  tell_crowded(!entered.far_side && sources_.add(entered.client.address()));
  return entered;
}

void Flows::remove(FlowId id, FlowTable::End end) {
  const FlowRecord& record = table_.live().at(id);
  const bool changed = !record.far_side && sources_.remove(record.client.address());
  table_.remove(id, end);
  tell_crowded(changed);
}

void Flows::limits_changed() {
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
                              {"reason", explain(decision.reason).code}});
  }
  return added;
}

void Flows::start(Accepted accepted) {
  Decision decision = decide(accepted.client.address(), accepted.destination);
  if (decision.link) return start_linked(std::move(accepted), std::move(decision));
  FlowRecord& record = add_record(accepted, decision);
  start_past(std::move(accepted), record, decision.refused);
}

// `first`: what was read of the client already.
void Flows::start_past(Accepted accepted, FlowRecord& record, bool refused, Buffer first) {
  if (refused) {
    log::info("flow_refused", {{"flow", record.id},
                               {"to", accepted.destination.to_text()},
                               {"reason", explain(record.reason).code}});
    refuse(accepted);
    return remove(record.id, FlowTable::End::reset);
  }
  // A client of transparent mode keeps its address; towards an explicit one this proxy is the client.
  auto source = accepted.origin == Origin::tproxy ? config::Source::client : config::Source::proxy;
  const FlowId id = record.id;
  // The signal outlives what it can cancel.
  auto forget_later = [this, id](std::exception_ptr) { asio::post(io_, [this, id] { relayed_.erase(id); }); };
  asio::co_spawn(io_, relay_past(std::move(accepted), record, source, std::move(first)),
                 asio::bind_cancellation_slot(relayed_[id].slot(), std::move(forget_later)));
}

// ----------------------------------------------------------------------------------------------- over the
// link

void Flows::start_linked(Accepted accepted, Decision decision) {
  FlowRecord& record = add_record(accepted, decision);
  link::PeerLink& link = *decision.link;
  config::Features features = config::meet(decision.policy.features, link.session().peer_allowed());
  record.features = features;
  link::OpenRequest request{
      .destination = accepted.destination,
      .client = accepted.client,
      .source = accepted.origin == Origin::tproxy ? config_.intercept.source : config::Source::proxy,
      .features = features};
  const modules::Listed* module = choose_module(record, link);
  if (module) {
    request.module = module->name;
    request.module_version = module->version;
  }
  link::Stream& stream = link.session().open(std::move(request), link::Clock::now());
  auto flow = std::make_unique<LinkedFlow>(std::move(accepted.socket), link, stream, record, forget());
  LinkedFlow& started = *flow;
  own(std::move(flow));
  if (module) started.use_module(*module, module->make_near(ends_of(record.client.address(), record.destination)), tell_reason());
  // While an answer of the peer is overdue the client's bytes stay with us: if the link turns out to be lost
  // the flow goes past it, and if not it has lost a round trip.
  const bool at_once = features.fast_connect && !link.session().overdue(link::Clock::now());
  started.start_near(at_once ? LinkedFlow::Begin::at_once : LinkedFlow::Begin::after_answer,
                     std::move(accepted.answer),
                     [this](LinkedFlow& of, const link::OpenAnswer& answer) { on_answer(of, answer); });
}

// Both sides run it, or neither does: the peer has said which it has.
const modules::Listed* Flows::choose_module(FlowRecord& record, const link::PeerLink& link) {
  const modules::Listed* module = modules::for_port(modules_, record.destination.port);
  if (!module || !(record.features.*module->feature)) return nullptr;
  if (module->memory->is_short()) {
    table_.give_reason(record, Reason::memory_limit);
    return nullptr;
  }
  if (link.peer_has_module(module->name, module->version)) return module;
  table_.give_reason(record, Reason::module_not_at_peer);
  return nullptr;
}

LinkedFlow::TellReason Flows::tell_reason() {
  return [this](FlowRecord& record, Reason reason) { table_.give_reason(record, reason); };
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
    FlowId id = record.id;
    linked_.erase(id);
    remove(id, was_reset ? FlowTable::End::reset : FlowTable::End::closed);
  };
}

void Flows::on_answer(LinkedFlow& flow, const link::OpenAnswer& answer) {
  FlowRecord& record = flow.record();
  if (answer.outcome == ConnectOutcome::connected) {
    if (answer.source_fallback) table_.give_reason(record, Reason::source_fallback);
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

// The client was accepted before the server was asked; its next attempt shall meet the server's own answer.
void Flows::tell_refused(const FlowRecord& record) {
  if (record.origin == Origin::tproxy && on_server_refused && record.destination.host.empty())
    on_server_refused({record.destination.address, record.destination.port});
}

// ------------------------------------------------------------------------------------------------ the link
// is lost

std::vector<FlowId> Flows::unanswered_on(const link::PeerLink& link) const {
  std::vector<FlowId> ids;
  for (const auto& [id, flow] : linked_)
    if (&flow->link() == &link && flow->unanswered()) ids.push_back(id);
  return ids;
}

// A flow that began a moment before the link was known to be lost. Whether the server can have had a byte of
// it is Stream::take_back()'s to say. Where it can, the flow waits for the link as every live one does: its
// first bytes on a second connection could be a second order, and contracts say a reset, never a second
// attempt. A connection to the server without a byte, which a peer that lives may have made, is no attempt.
void Flows::on_link_lost(const link::PeerLink& link) {
  for (FlowId id : unanswered_on(link)) {
    LinkedFlow& flow = *linked_.at(id);
    FlowRecord& record = flow.record();
    const Decision decision = decide(record.client.address(), record.destination);
    if (decision.link) continue;
    auto client = flow.take_back();
    if (!client) continue;
    linked_.erase(id);
    table_.leave_link(record, decision.reason);
    log::debug("flow_taken_back", {{"flow", id}, {"reason", explain(decision.reason).code}});
    Accepted accepted{.socket = std::move(client->socket),
                      .client = record.client,
                      .destination = record.destination,
                      .origin = record.origin,
                      .answer = std::move(client->reply)};
    // The peer may hold a connection to the server under the client's own port.
    accepted.client.port(0);
    start_past(std::move(accepted), record, decision.refused, std::move(client->bytes));
  }
}

// A client that is reset at once tries again, and past the link; one that waits would wait for a minute, and
// then be reset. Flows that were answered keep to that minute: they have more to lose, if we should be wrong.
// What their modules believe to have been promised is written down now: their clients may come back past the peer.
void Flows::on_peer_gone(const link::PeerLink& link) {
  for (FlowId id : unanswered_on(link))
    if (auto found = linked_.find(id); found != linked_.end()) found->second->cut();
  for (const auto& [id, flow] : linked_)
    if (&flow->link() == &link && flow->record().far_side) flow->suspect_peer();
}

// Looks at every flow: once for all who wait, and not for each of them.
void Flows::look_for_doubt() {
  doubted_.clear();
  for (const auto& [id, flow] : linked_) {
    const FlowRecord& record = flow->record();
    if (record.far_side && record.module && !record.module->steps_aside && flow->link().perhaps_gone())
      doubted_.push_back(ends_at_any_port(record));
  }
  std::ranges::sort(doubted_);
  const auto same = std::ranges::unique(doubted_);
  doubted_.erase(same.begin(), same.end());
  doubted_at_ = link::Clock::now();
}

bool Flows::is_in_doubt(const modules::Ends& ends) {
  constexpr auto kLookAgain = 100ms;
  if (!doubted_.empty() && link::Clock::now() - doubted_at_ >= kLookAgain) look_for_doubt();
  return std::ranges::binary_search(doubted_, ends);
}

// Seconds at most: a peer is gone, or is heard again.
asio::awaitable<void> Flows::wait_while_in_doubt(const FlowRecord& record) {
  if (!modules::for_port(modules_, record.destination.port)) co_return;
  const modules::Ends ends = ends_at_any_port(record);
  asio::steady_timer timer(io_);
  boost::system::error_code cancelled;
  while (!cancelled && is_in_doubt(ends)) {
    timer.expires_after(100ms);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
}

void Flows::run_modules() {
  for (auto& [id, flow] : linked_)
    if (flow->record().module && !flow->record().far_side) flow->features_changed();
}

void Flows::apply_features() {
  for (auto& [id, flow] : linked_) {
    FlowRecord& record = flow->record();
    if (record.far_side || !flow->stream()) continue;
    auto link = std::find_if(links_.begin(), links_.end(),
                             [&](const auto& l) { return l->peer().name == record.peer; });
    if (link == links_.end() || !(*link)->session_if_any()) continue;
    auto policy = config::policy_for(config_, features_, record.client.address(),
                                     address_of(record.destination), record.destination.port);
    config::Features features = config::meet(policy.features, (*link)->session().peer_allowed());
    // Which way a flow goes was decided at its start.
    features.transport = record.features.transport;
    record.features = features;
    (*link)->session().change_features(flow->stream()->id(), features);
    flow->features_changed();
    (*link)->kick();
  }
}

void Flows::cut_all() {
  for (auto& [id, flow] : linked_) flow->cut();
}

// ------------------------------------------------------------------------------------------ before the
// server

// optimised: the flow begins.
Reason Flows::admit(const link::PeerLink& link, const link::OpenRequest& request) {
  if (table_.live().size() >= config_.limits.flows) return Reason::flow_limit;
  const bool shows_client = request.client && request.source != config::Source::proxy;
  const auto& own_networks = own_.networks_at(std::chrono::steady_clock::now());
  if (shows_client &&
      !peer_may_show(config_.peers, link.peer(), own_networks, request.client->address()))
    return Reason::client_not_in_networks;
  return Reason::optimised;
}

void Flows::on_opened(link::PeerLink& link, link::Stream& stream) {
  const link::OpenRequest& request = stream.request();
  const Reason reason = admit(link, request);
  FlowRecord record{.client = request.client.value_or(tcp::endpoint{}),
                    .destination = request.destination,
                    .origin = Origin::forward,
                    .far_side = true,
                    .peer = link.peer().name,
                    .reason = reason,
                    .features = request.features,
                    .started = std::chrono::steady_clock::now()};
  FlowRecord& added = enter(std::move(record));
  if (log::enabled(log::Level::debug)) {
    log::debug("flow_start", {{"flow", added.id},
                              {"client", added.client.address().to_string()},
                              {"to", added.destination.to_text()},
                              {"from_peer", added.peer}});
  }
  if (reason != Reason::optimised) return refuse_opened(link, stream, added);
  own(std::make_unique<LinkedFlow>(tcp::socket(io_), link, stream, added, forget()));
  DialRequest dial{.destination = request.destination,
                   .client = request.client,
                   .source = request.client ? request.source : config::Source::proxy,
                   .check = DialRequest::Check::peer};
  dial.may_dial = [this, client = added.client.address(),
                   port = request.destination.port](const asio::ip::address& server) {
    return closed_ == Closed::lifted || !config::leaves_again(config_, client, server, port);
  };
  asio::co_spawn(io_, serve(added.id, std::move(dial)), asio::detached);
}

void Flows::refuse_opened(link::PeerLink& link, link::Stream& stream, const FlowRecord& record) {
  const ReasonText& why = explain(record.reason);
  if (peer_refusals_.may_write(record.peer + ' ' + std::string(why.code), std::chrono::steady_clock::now()))
    log::warn("flow_refused", {{"flow", record.id},
                               {"client", record.client.address().to_string()},
                               {"to", record.destination.to_text()},
                               {"from_peer", record.peer},
                               {"reason", why.code},
                               {"remedy", why.remedy}});
  stream.give_answer({.outcome = outcome_of(record.reason)});
  stream.abort();
  link.release(stream.id());
  remove(record.id, FlowTable::End::reset);
}

asio::awaitable<void> Flows::serve(FlowId id, DialRequest request) {
  Dialled dialled = co_await dialer_.dial(std::move(request));
  auto found = linked_.find(id);
  // The near side gave the flow up meanwhile.
  if (found == linked_.end() || !found->second->stream()) co_return;
  LinkedFlow& flow = *found->second;
  if (!dialled.connected()) {
    log::debug(
        "dial_failed",
        {{"flow", id}, {"to", flow.record().destination.to_text()}, {"reason", dialled.error.message()}});
    co_return flow.refuse_far(dialled.outcome);
  }
  if (dialled.source_fallback) table_.give_reason(flow.record(), Reason::source_fallback);
  link::OpenAnswer answer{.outcome = ConnectOutcome::connected, .source_fallback = dialled.source_fallback};
  const link::OpenRequest& opened = flow.stream()->request();
  if (const auto* module = modules::find(modules_, opened.module, opened.module_version)) {
    answer.module_accepted = true;
    flow.use_module(*module, module->make_far(ends_of(flow.record().client.address(), opened.destination)), tell_reason());
  }
  flow.start_far(std::move(dialled.socket), answer);
}

// ----------------------------------------------------------------------------------------------- past the
// link

asio::awaitable<void> Flows::relay_past(Accepted accepted, FlowRecord& record, config::Source source,
                                        Buffer first) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await wait_while_in_doubt(record);
  DialRequest request{
      .destination = accepted.destination,
      .client = accepted.client,
      .source = source,
      .check = accepted.origin == Origin::forward ? DialRequest::Check::nothing : DialRequest::Check::client};
  // A name may turn out to be a destination that only the link may carry.
  const auto client = accepted.client.address();
  request.may_dial = [this, client, port = request.destination.port](const asio::ip::address& server) {
    return may_leave(client, {.address = server, .port = port});
  };
  Dialled dialled = co_await dialer_.dial(std::move(request));
  FlowTable::End end = FlowTable::End::reset;
  if (accepted.answer) {
    std::string reply = accepted.answer(dialled.outcome);
    boost::system::error_code ignored;
    co_await asio::async_write(accepted.socket, asio::buffer(reply),
                               asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (!dialled.connected()) {
    log::debug(
        "dial_failed",
        {{"flow", record.id}, {"to", accepted.destination.to_text()}, {"reason", dialled.error.message()}});
    tell_refused(record);
    if (!accepted.answer) reset(accepted.socket);
  } else {
    auto how = co_await guard_past(accepted.socket, dialled.socket, record, first);
    if (!how) how = co_await relay_.run(accepted.socket, dialled.socket, record.bytes, first);
    if (how == RelayEnd::finished) end = FlowTable::End::closed;
  }
  log_end(record, end == FlowTable::End::closed ? "closed" : "reset");
  remove(record.id, end);
}

// As long as its module has to tell the client something. Nothing: the plain relay has the rest, without `first`
// where that has gone.
asio::awaitable<std::optional<RelayEnd>> Flows::guard_past(tcp::socket& client, tcp::socket& server,
                                                           FlowRecord& record, Buffer& first) {
  std::optional<RelayEnd> end;
  const modules::Listed* module = modules::for_port(modules_, record.destination.port);
  if (!module || !module->make_guard) co_return end;
  const modules::Ends ends = ends_of(record.client.address(), record.destination);
  const auto guard = module->make_guard(ends);
  if (!guard) co_return end;
  const Reason why_past = record.reason;
  table_.give_reason(record, Reason::lost_writes);
  end = co_await relay_guarded(client, server, record.bytes, first, *guard, *module->memory);
  first.clear();
  if (!end) table_.give_reason(record, why_past);
  co_return end;
}

}  // namespace longhaul::flows
