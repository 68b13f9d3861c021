// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/bypassing_flows.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "proxy/flows/ends.h"
#include "proxy/flows/flow_end_log.h"
#include "proxy/flows/guarded_relay.h"
#include "proxy/log/log.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;
namespace {

void reset_client(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

// A client that expects the proxy's reply receives one; any other receives a reset.
void refuse_client(Accepted& accepted) {
  if (!accepted.answer) return reset_client(accepted.socket);
  std::string reply = accepted.answer(ConnectOutcome::not_allowed);
  boost::system::error_code ignored;
  accepted.socket.non_blocking(true, ignored);  // a few bytes on a new connection: the kernel has room
  accepted.socket.write_some(asio::buffer(reply), ignored);
  accepted.socket.shutdown(tcp::socket::shutdown_send, ignored);
  accepted.socket.close(ignored);
}

}  // namespace

BypassingFlows::BypassingFlows(asio::io_context& io, FlowTable& table, Dialer& dialer, Admission& admission,
                               const Paths& paths, const ClientLosses& losses, const Doubt& doubt,
                               OnNotConnected on_not_connected)
    : io_(io),
      table_(table),
      dialer_(dialer),
      admission_(admission),
      paths_(paths),
      losses_(losses),
      doubt_(doubt),
      on_not_connected_(std::move(on_not_connected)) {}

void BypassingFlows::start(Accepted accepted, FlowRecord& record, bool refused, Buffer first) {
  if (refused) {
    log::info("flow_refused",
              {{"flow", record.id}, {"to", accepted.destination.to_text()}, {"reason", record.reason->code}});
    record.reset_by = ResetBy::near;
    refuse_client(accepted);
    return admission_.remove(record.id, FlowTable::End::reset);
  }
  // A client of transparent mode keeps its address; for an explicit listener's client, the server sees this
  // proxy's address.
  auto source = accepted.origin == Origin::tproxy ? config::Source::client : config::Source::proxy;
  const FlowId id = record.id;
  // The signal outlives the operation that it cancels.
  auto forget_later = [this, id](std::exception_ptr) { asio::post(io_, [this, id] { relayed_.erase(id); }); };
  asio::co_spawn(io_, relay(std::move(accepted), record, source, std::move(first)),
                 asio::bind_cancellation_slot(relayed_[id].slot(), std::move(forget_later)));
}

asio::awaitable<void> BypassingFlows::relay(Accepted accepted, FlowRecord& record, config::Source source,
                                            Buffer first) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await wait_while_in_doubt(record);
  DialRequest request{
      .destination = accepted.destination,
      .client = accepted.client,
      .source = source,
      .check = accepted.origin == Origin::forward ? DialRequest::Check::nothing : DialRequest::Check::client};
  // A name may resolve to a destination that must not bypass the link.
  const auto client = accepted.client.address();
  request.may_dial = [this, client, port = request.destination.port](const asio::ip::address& server) {
    return paths_.may_leave(client, {.address = server, .port = port});
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
    record.reset_by = dialled.outcome == ConnectOutcome::refused ? ResetBy::server : ResetBy::near;
    on_not_connected_(record);
    if (!accepted.answer) reset_client(accepted.socket);
  } else {
    std::vector<std::shared_ptr<void>> unguarded;
    auto how = co_await guard(accepted.socket, dialled.socket, record, first, unguarded);
    if (!how) how = co_await relay_.run(accepted.socket, dialled.socket, record.bytes, first);
    if (how == RelayEnd::finished) end = FlowTable::End::closed;
    if (how == RelayEnd::client_reset) record.reset_by = ResetBy::client;
    if (how == RelayEnd::server_reset) record.reset_by = ResetBy::server;
    if (how == RelayEnd::cancelled) record.reset_by = ResetBy::near;
  }
  log_end(record, end);
  admission_.remove(record.id, end);
}

// If the flow may not bypass the link, its client is notified by a reset.
void BypassingFlows::start_guarded(Accepted accepted, FlowRecord& record, Reason why) {
  const bool refused = !paths_.may_leave(record.client.address(), record.destination);
  table_.leave_link(record, why);
  if (refused) (void)losses_.told_by_reset(ends_of(record.client.address(), record.destination));
  start(std::move(accepted), record, refused);
}

// Relays through a guard while the module must report something to the client. Returns nullopt if the plain
// relay must carry the rest: `first` is then empty if it has been sent, and `unguarded` must be held until
// the relay ends.
asio::awaitable<std::optional<RelayEnd>> BypassingFlows::guard(
    tcp::socket& client, tcp::socket& server, FlowRecord& record, Buffer& first,
    std::vector<std::shared_ptr<void>>& unguarded) {
  std::optional<RelayEnd> end;
  const auto guarding = losses_.make_guard(ends_of(record.client.address(), record.destination));
  if (!guarding.guard) {
    unguarded = losses_.unguarded(record.client.address(), record.destination);
    co_return end;
  }
  const Reason why_past = record.reason;
  if (const auto why_guarded = guarding.guard->reason()) table_.give_reason(record, *why_guarded);
  end = co_await relay_guarded(client, server, record.bytes, first, *guarding.guard, *guarding.memory);
  first.clear();
  if (!end) {
    unguarded = losses_.unguarded(record.client.address(), record.destination);
    table_.give_reason(record, why_past);
  }
  co_return end;
}

// Waits if the client belongs to a peer that may have ended. At most seconds: then the peer has ended, or
// responds again.
asio::awaitable<void> BypassingFlows::wait_while_in_doubt(const FlowRecord& record) {
  if (!losses_.any_module_at(record.destination.port)) co_return;
  const modules::Ends ends = ends_of(record.client.address(), record.destination);
  asio::steady_timer timer(io_);
  boost::system::error_code cancelled;
  while (!cancelled && doubt_.about(ends)) {
    timer.expires_after(100ms);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
}

void BypassingFlows::reset_disallowed() {
  for (auto& [id, signal] : relayed_) {
    const auto found = table_.live().find(id);
    if (found == table_.live().end()) continue;
    const FlowRecord& record = found->second;
    if (!paths_.may_leave(record.client.address(), record.destination))
      signal.emit(asio::cancellation_type::terminal);
  }
}

}  // namespace longhaul::flows
