// SPDX-License-Identifier: Apache-2.0
// Flows outside the link: relayed unchanged, or through a module's guard, or refused.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "proxy/flows/ends.h"
#include "proxy/flows/flows_parts.h"
#include "proxy/flows/guarded_relay.h"
#include "proxy/flows/recognition.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;
namespace {

// A client that waits for an answer gets one; any other understands a reset.
void refuse(Accepted& accepted) {
  if (!accepted.answer) return reset(accepted.socket);
  std::string reply = accepted.answer(ConnectOutcome::not_allowed);
  boost::system::error_code ignored;
  accepted.socket.non_blocking(true, ignored);  // a few bytes on a new connection: the kernel has room
  accepted.socket.write_some(asio::buffer(reply), ignored);
  accepted.socket.shutdown(tcp::socket::shutdown_send, ignored);
  accepted.socket.close(ignored);
}

}  // namespace

// `first`: bytes already read from the client.
void Flows::start_past(Accepted accepted, FlowRecord& record, bool refused, Buffer first) {
  if (refused) {
    log::info("flow_refused",
              {{"flow", record.id}, {"to", accepted.destination.to_text()}, {"reason", record.reason->code}});
    record.reset_by = ResetBy::near;
    refuse(accepted);
    return remove(record.id, FlowTable::End::reset);
  }
  // A client of transparent mode keeps its address; towards an explicit one this proxy is the client.
  auto source = accepted.origin == Origin::tproxy ? config::Source::client : config::Source::proxy;
  const FlowId id = record.id;
  // The signal outlives the operation that it cancels.
  auto forget_later = [this, id](std::exception_ptr) { asio::post(io_, [this, id] { relayed_.erase(id); }); };
  asio::co_spawn(io_, relay_past(std::move(accepted), record, source, std::move(first)),
                 asio::bind_cancellation_slot(relayed_[id].slot(), std::move(forget_later)));
}

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
    record.reset_by = dialled.outcome == ConnectOutcome::refused ? ResetBy::server : ResetBy::near;
    tell_refused(record);
    if (!accepted.answer) reset(accepted.socket);
  } else {
    std::vector<std::shared_ptr<void>> unguarded;
    auto how = co_await guard_past(accepted.socket, dialled.socket, record, first, unguarded);
    if (!how) how = co_await relay_.run(accepted.socket, dialled.socket, record.bytes, first);
    if (how == RelayEnd::finished) end = FlowTable::End::closed;
    if (how == RelayEnd::client_reset) record.reset_by = ResetBy::client;
    if (how == RelayEnd::server_reset) record.reset_by = ResetBy::server;
    if (how == RelayEnd::cancelled) record.reset_by = ResetBy::near;
  }
  log_end(record, end == FlowTable::End::closed ? "closed" : "reset");
  remove(record.id, end);
}

// ---- what clients must be told

std::vector<modules::Losses*> Flows::losses_of(std::uint16_t port) const {
  std::vector<modules::Losses*> all;
  for (const modules::Listed& module : modules_)
    if (may_be_at(module, config_.modules, port))
      if (modules::Losses* losses = module.instance->losses()) all.push_back(losses);
  return all;
}

std::optional<Reason> Flows::why_guarded(const asio::ip::address& client, const Destination& destination) const {
  for (modules::Losses* losses : losses_of(destination.port))
    if (const auto guard = losses->make_guard(ends_of(client, destination)))
      if (const auto why = guard->reason()) return why;
  return std::nullopt;
}

std::vector<std::shared_ptr<void>> Flows::unguarded(const FlowRecord& record) const {
  std::vector<std::shared_ptr<void>> held;
  for (modules::Losses* losses : losses_of(record.destination.port))
    held.push_back(losses->unguarded(ends_of(record.client.address(), record.destination)));
  return held;
}

// Where it may not leave the link, a reset has to tell its client.
void Flows::start_guarded(Accepted accepted, FlowRecord& record, Reason why) {
  const bool refused = !may_leave(record.client.address(), record.destination);
  table_.leave_link(record, why);
  if (refused)
    for (modules::Losses* losses : losses_of(record.destination.port))
      losses->told_by_reset(ends_of(record.client.address(), record.destination));
  start_past(std::move(accepted), record, refused);
}

// As long as its module must report something to the client. No result: the plain relay has the rest, without
// `first` if that has been sent, and holds `unguarded` until it ends.
asio::awaitable<std::optional<RelayEnd>> Flows::guard_past(tcp::socket& client, tcp::socket& server,
                                                           FlowRecord& record, Buffer& first,
                                                           std::vector<std::shared_ptr<void>>& unguarded) {
  std::optional<RelayEnd> end;
  const modules::Ends ends = ends_of(record.client.address(), record.destination);
  const modules::Listed* guarding = nullptr;
  std::unique_ptr<modules::Guard> guard;
  for (const modules::Listed& module : modules_) {
    if (guard || !may_be_at(module, config_.modules, record.destination.port)) continue;
    if (modules::Losses* losses = module.instance->losses()) guard = losses->make_guard(ends);
    guarding = &module;
  }
  if (!guard) {
    unguarded = this->unguarded(record);
    co_return end;
  }
  const Reason why_past = record.reason;
  if (const auto why_guarded = guard->reason()) table_.give_reason(record, *why_guarded);
  end = co_await relay_guarded(client, server, record.bytes, first, *guard, *guarding->memory);
  first.clear();
  if (!end) {
    unguarded = this->unguarded(record);
    table_.give_reason(record, why_past);
  }
  co_return end;
}

}  // namespace longhaul::flows
