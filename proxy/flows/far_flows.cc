// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/far_flows.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "proxy/flows/allow.h"
#include "proxy/flows/ends.h"
#include "proxy/flows/link_reasons.h"
#include "proxy/log/log.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
namespace {

// The answer to the near side if the flow is refused here for this reason.
ConnectOutcome outcome_of(Reason reason) {
  return reason == reasons::client_not_in_networks ? ConnectOutcome::client_not_allowed
                                                   : ConnectOutcome::failed;
}

// As the kernel measured it while connecting.
std::chrono::microseconds round_trip_of(tcp::socket& server) {
  tcp_info state{};
  socklen_t size = sizeof state;
  const bool is_known = ::getsockopt(server.native_handle(), IPPROTO_TCP, TCP_INFO, &state, &size) == 0;
  return std::chrono::microseconds(is_known ? state.tcpi_rtt : 0);
}

}  // namespace

FarFlows::FarFlows(asio::io_context& io, const config::Config& config, const config::Features& features,
                   modules::List modules, FlowTable& table, Dialer& dialer, Admission& admission,
                   const Paths& paths, const ClientLosses& losses, LinkedFlows& linked)
    : io_(io),
      config_(config),
      features_(features),
      modules_(modules),
      table_(table),
      dialer_(dialer),
      admission_(admission),
      paths_(paths),
      losses_(losses),
      linked_(linked),
      spares_(io, dialer, modules.empty() ? nullptr : modules.front().memory) {}

// Whether the client's address belongs to the peer.
bool FarFlows::peer_speaks_for(const link::PeerLink& link, const asio::ip::address& client) {
  return peer_may_show(config_.peers, link.peer(), own_.networks_at(std::chrono::steady_clock::now()),
                       client);
}

// Returns `optimised` if the flow may begin.
Reason FarFlows::admit(const link::PeerLink& link, const link::OpenRequest& request) {
  if (!admission_.has_room_for_peer(link.peer().name)) return reasons::flow_limit;
  const bool shows_client = request.client && request.source != config::Source::proxy;
  if (shows_client && !peer_speaks_for(link, request.client->address()))
    return reasons::client_not_in_networks;
  return reasons::optimised;
}

Reason FarFlows::decide(const link::PeerLink& link, const asio::ip::address& client,
                        const Destination& destination) {
  if (const Reason reason = reason_of(link.state()); reason != reasons::optimised) return reason;
  if (!admission_.has_room_for_peer(link.peer().name)) return reasons::flow_limit;
  if (config_.intercept.source != config::Source::proxy && !peer_speaks_for(link, client))
    return reasons::client_not_in_networks;
  const auto server = address_of(destination);
  if (!server) return reasons::optimised;  // names are checked after they were resolved
  const bool leaves = paths_.leaves_again(client, *server, destination.port);
  const auto& own = own_.at(std::chrono::steady_clock::now());
  if (leaves || !peer_may_dial(config_.link.allow, config::unmapped(*server), own))
    return reasons::peer_refused;
  return reasons::optimised;
}

void FarFlows::on_opened(link::PeerLink& link, link::Stream& stream) {
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
  FlowRecord& added = admission_.enter(std::move(record));
  if (log::enabled(log::Level::debug)) {
    log::debug("flow_start", {{"flow", added.id},
                              {"client", added.client.address().to_string()},
                              {"to", added.destination.to_text()},
                              {"from_peer", added.peer}});
  }
  if (reason != reasons::optimised) return refuse_opened(link, stream, added);
  linked_.add(tcp::socket(io_), link, stream, added);
  DialRequest dial{.destination = request.destination,
                   .client = request.client,
                   .source = request.client ? request.source : config::Source::proxy,
                   .check = DialRequest::Check::peer};
  const auto leaves_again = std::make_shared<bool>(false);
  dial.may_dial = [this, client = added.client.address(), port = request.destination.port,
                   leaves_again](const asio::ip::address& server) {
    *leaves_again = paths_.leaves_again(client, server, port);
    return !*leaves_again;
  };
  asio::co_spawn(io_, serve(added.id, std::move(dial), leaves_again), asio::detached);
}

// One line a minute for each peer and reason.
void FarFlows::log_refused(const FlowRecord& record, std::string_view remedy) {
  const Reason why = record.reason;
  if (peer_refusals_.may_write(record.peer + ' ' + std::string(why->code), std::chrono::steady_clock::now()))
    log::warn("flow_refused", {{"flow", record.id},
                               {"client", record.client.address().to_string()},
                               {"to", record.destination.to_text()},
                               {"from_peer", record.peer},
                               {"reason", why->code},
                               {"remedy", remedy}});
}

void FarFlows::refuse_opened(link::PeerLink& link, link::Stream& stream, FlowRecord& record) {
  log_refused(record, record.reason->remedy);
  record.reset_by = ResetBy::far;
  stream.give_answer({.outcome = outcome_of(record.reason)});
  stream.abort();
  link.release(stream.id());
  admission_.remove(record.id, FlowTable::End::reset);
}

// The server was not connected. If it was not allowed, the remedy is at this site, so this site logs it.
void FarFlows::on_not_dialled(FlowRecord& record, const Dialled& dialled, bool would_leave_again) {
  log::debug(
      "dial_failed",
      {{"flow", record.id}, {"to", record.destination.to_text()}, {"reason", dialled.error.message()}});
  table_.give_reason(record, reason_of(dialled.outcome));
  if (dialled.outcome == ConnectOutcome::not_allowed)
    log_refused(record, would_leave_again
                            ? "the destination is at another peer's site, and fail = closed applies: "
                              "configure a link from the "
                              "flow's site to that peer, or add the destination to [link] allow"
                            : "add the destination to [link] allow of this site, then longhaul reload");
}

LinkedFlow* FarFlows::open_flow(FlowId id) const {
  LinkedFlow* flow = linked_.find(id);
  return flow && flow->stream() ? flow : nullptr;
}

const modules::ConnectAhead* FarFlows::connects_ahead(LinkedFlow& flow) {
  const link::OpenRequest& opened = flow.stream()->request();
  const auto* module = modules::find(modules_, opened.module, opened.module_version);
  const auto* ahead = module && opened.client ? module->descriptor.connect_ahead : nullptr;
  // This site's setting also applies to peers that lack this feature or leave it on.
  return ahead && config::without_idle_parts(config::meet(opened.features, features_))
                          .modules.value(ahead->feature) != 0
             ? ahead
             : nullptr;
}

asio::awaitable<void> FarFlows::serve(FlowId id, DialRequest request,
                                      std::shared_ptr<const bool> leaves_again) {
  LinkedFlow* const begun = open_flow(id);
  if (!begun) co_return;
  const FlowRecord& record = begun->record();
  const modules::ConnectAhead* const ahead = connects_ahead(*begun);
  const Spares::Key key{record.peer, record.client.address(), record.destination.to_text()};
  auto spare = ahead ? spares_.take(key, request) : std::nullopt;
  const bool is_spare = spare.has_value();
  Dialled dialled(io_.get_executor());
  if (is_spare)
    dialled = std::move(*spare);
  else
    dialled = co_await dialer_.dial(request);
  if (dialled.error == asio::error::no_descriptors && spares_.clear())
    dialled = co_await dialer_.dial(request);
  LinkedFlow* const found = open_flow(id);
  if (!found) co_return;
  LinkedFlow& flow = *found;
  if (!dialled.connected()) {
    on_not_dialled(flow.record(), dialled, *leaves_again);
    co_return flow.refuse_far(dialled.outcome);
  }
  if (dialled.source_fallback) table_.give_reason(flow.record(), reasons::source_fallback);
  link::OpenAnswer answer{.outcome = ConnectOutcome::connected, .source_fallback = dialled.source_fallback};
  const link::OpenRequest& opened = flow.stream()->request();
  // Losses are recorded under the client's address, which a peer can choose freely.
  const auto client = flow.record().client.address();
  const modules::Ends ends = peer_speaks_for(flow.link(), client)
                                 ? ends_of(client, opened.destination)
                                 : ends_of_peers_client(flow.record().peer, client, opened.destination);
  const auto* module = modules::find(modules_, opened.module, opened.module_version);
  // Resets a flow without a module if its client must be notified of lost writes. The near daemon may have
  // restarted since the promises were made, and so have no record of them. The answer is "connected", then a
  // reset: after any other answer, the flows of all clients to this server would bypass the link for a while.
  if (!module && losses_.told_by_reset(ends)) co_return flow.refuse_far(ConnectOutcome::connected);
  if (module) {
    answer.module_accepted = true;
    flow.use_module(*module, module->instance->make_far(ends, bytes_of(dialled.server.address())),
                    linked_.tell_reason());
    linked_.enter_doubt(flow, ends);
  }
  if (ahead) spares_.client_connected(key, request, round_trip_of(dialled.socket));
  // Connects the same address again, not another address of the name: the module has read responses of this
  // server.
  request.destination = {.address = dialled.server.address(), .port = dialled.server.port()};
  flow.start_far(
      std::move(dialled.socket), answer,
      [this, id, request = std::move(request)] {
        asio::co_spawn(io_, serve_again(id, request), asio::detached);
      },
      is_spare ? module : nullptr);
}

asio::awaitable<void> FarFlows::serve_again(FlowId id, DialRequest request) {
  Dialled dialled = co_await dialer_.dial(std::move(request));
  LinkedFlow* const found = open_flow(id);
  if (!found) co_return;
  if (found->renews_server()) spares_.replaced();
  found->start_again(std::move(dialled.socket));
}

}  // namespace longhaul::flows
