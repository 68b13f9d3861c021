// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/streams.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>

#include "proxy/modules/http/h2/blocks.h"
#include "proxy/modules/http/h2/early.h"
#include "proxy/modules/http/h2/settings.h"

namespace longhaul::http::h2 {
namespace {

TunnelResets::Of kind_of(const Exchange& exchange) {
  return exchange.is_tunnel ? TunnelResets::Of::tunnel : TunnelResets::Of::request;
}

}  // namespace

Streams::Streams(const Place& place, std::shared_ptr<Site> site, Receiving& receiving)
    : answers_(place, std::move(site), &receiving),
      content_(client_, server_, kMostDown),
      requests_(place, answers_, exchanges_, client_, server_) {
  client_.announce(settings_for_client(kUpWindow, kMostStreams), kAllUpWindow);
}

// Towards the near half: the near half's own windows limit what crosses the line.
Streams::Streams(const Place& place, std::shared_ptr<Site> site, Ahead& ahead)
    : answers_(place, std::move(site), nullptr),
      ahead_(&ahead),
      content_(client_, server_, {}),
      requests_(place, answers_, exchanges_, client_, server_) {
  client_.announce(settings_for_client(kLanWindow, kMostStreams), kAllLanWindow);
}

void Streams::begin() {
  if (ahead_)
    server_.announce(settings_for_server(kLanWindow), kAllLanWindow);
  else
    server_.announce(settings_for_server(kDownWindow), kAllDownWindow);
}

// The requests get the client's own names for streams, and the server's view of the windows is the client's:
// what this half would have said is what the server has heard already, so it is dropped.
bool Streams::take_over(TimePoint now, Bytes at_server) {
  const auto early = read_early(at_server);
  if (!early) return false;
  now_ = now;
  requests_.begin_late();
  if (early->settings) server_.announce(*early->settings, 0);
  const bool is_understood = client_.feed(at_server) && !client_.has_complained();
  Buffer heard;
  server_.drain(heard, ~std::size_t{0});
  for (const auto& [stream, more] : early->windows) server_.widen(stream, more);
  server_.drain(heard, ~std::size_t{0});
  requests_.end_late();
  const bool is_same = exchanges_.size() == early->requests && exchanges_.size_at_server() == early->requests;
  if (!is_understood || !is_same || server_.has_complained()) return false;
  server_.announce(settings_for_server(kDownWindow), kAllDownWindow);
  return true;
}

bool Streams::from_client(TimePoint now, Bytes bytes) {
  now_ = now;
  return client_.feed(bytes);
}

bool Streams::from_server(TimePoint now, Bytes bytes) {
  now_ = now;
  const bool goes_on = server_.feed(bytes);
  offer_tunnels();
  if (ahead_ && goes_on) ahead_->fetch(server_);
  return goes_on;
}

// ------------------------------------------------------------------------------------------- from the client

void Streams::FromClient::on_headers(StreamId stream, Fields block, bool ends) {
  Exchange* const exchange = all_.exchanges_.of_client(stream);
  if (!exchange) return all_.requests_.open(all_.now_, stream, std::move(block), ends);
  exchange->up.trailers = std::move(block);
  on_end(stream);
}

void Streams::FromClient::on_data(StreamId stream, Bytes bytes) {
  Exchange* const exchange = all_.exchanges_.of_client(stream);
  if (!exchange || exchange->server == 0) return all_.client_.consumed(stream, bytes.size());
  all_.content_.take_up(*exchange, bytes);
}

void Streams::FromClient::on_end(StreamId stream) {
  Exchange* const exchange = all_.exchanges_.of_client(stream);
  if (!exchange) return;
  exchange->up.ended = true;
  if (exchange->server != 0) all_.server_.resume(exchange->server);
}

void Streams::FromClient::on_closed(StreamId stream, std::uint32_t error) {
  Exchange* const exchange = all_.exchanges_.of_client(stream);
  // A reset may also say that nothing is wrong.
  const bool is_cut = exchange && exchange->server != 0 && !(exchange->up.ended && exchange->end_sent);
  if (error != errors::none || is_cut) all_.count_reset();
  if (!exchange) return;
  exchange->client = 0;
  exchange->incoming.reset();
  all_.content_.drop_down(*exchange);
  if (exchange->server != 0 && (error != errors::none || is_cut))
    all_.resets_up_.reset(exchange->server, error, kind_of(*exchange), exchange->up);
  all_.settle(*exchange);
}

// Of a response: as much more may come.
void Streams::FromClient::on_sent(StreamId stream, std::size_t bytes) {
  Exchange* const exchange = all_.exchanges_.of_client(stream);
  if (exchange) all_.content_.on_sent_down(*exchange, bytes);
}

// The server has answered without having read everything: the client need not send the rest (RFC 9113,
// section 8.1).
void Streams::FromClient::on_end_sent(StreamId stream) {
  Exchange* const exchange = all_.exchanges_.of_client(stream);
  if (!exchange) return;
  exchange->end_sent = true;
  if (exchange->server == 0 && !exchange->up.ended) all_.client_.reset(stream, errors::none);
}

void Streams::count_reset() {
  if (!resets_.take(now_)) client_.terminate(errors::calm);
}

// ------------------------------------------------------------------------------------------- from the server

void Streams::FromServer::on_headers(StreamId stream, Fields block, bool ends) {
  if (all_.ahead_ && all_.ahead_->on_headers(all_.now_, all_.server_, stream, block, ends)) return;
  Exchange* const exchange = all_.exchanges_.of_server(stream);
  if (!exchange || exchange->client == 0) return;
  if (!exchange->responded) return all_.take_response(*exchange, block, ends);
  exchange->incoming.reset();  // with trailers it is not stored
  if (exchange->is_from_store) return;
  exchange->down.trailers = std::move(block);
  on_end(stream);
}

void Streams::inform(Exchange& exchange, const Fields& block) {
  exchange.is_refused = !exchange.informed.take(block);
  exchange.is_refused ? server_.reset(exchange.server, errors::protocol) : client_.inform(exchange.client, block);
}

void Streams::take_response(Exchange& exchange, const Fields& block, bool ends) {
  if (exchange.is_refused) return;
  const auto response = response_of(block);
  if (!response) return server_.reset(exchange.server, errors::protocol);
  if (response->status < 200) return inform(exchange, block);
  answers_.note(exchange, *response);
  if (response->status == 304 && exchange.asked_about) return take_not_modified(exchange, *response, ends);
  exchange.responded = true;
  exchange.down.ended = ends;
  if (ahead_ && exchange.request) exchange.document = ahead_->begins(now_, *exchange.request, *response);
  client_.respond(exchange.client, block, ends ? nullptr : &exchange.down);
  answers_.begin_to_store(now_, exchange, *response);
  if (ends) store_if_whole(exchange);
}

void Streams::take_not_modified(Exchange& exchange, const ResponseHead& response, bool ends) {
  if (!ends) server_.reset(exchange.server, errors::cancel);
  exchanges_.leave(exchange);
  Fields block;
  if (answers_.take_not_modified(now_, exchange, response, block) == LocalAnswers::Found::nothing)
    return requests_.ask(exchange);
  requests_.respond(exchange, block);
}

void Streams::FromServer::on_data(StreamId stream, Bytes bytes) {
  if (all_.ahead_ && all_.ahead_->on_data(all_.now_, all_.server_, stream, bytes)) return;
  Exchange* const exchange = all_.exchanges_.of_server(stream);
  if (!exchange || exchange->client == 0 || !exchange->responded)
    return all_.server_.consumed(stream, bytes.size());
  if (exchange->incoming && !exchange->incoming->add(bytes)) exchange->incoming.reset();
  if (exchange->document) all_.ahead_->read(all_.now_, *exchange->document, bytes);
  all_.content_.take_down(*exchange, bytes);
}

void Streams::FromServer::on_end(StreamId stream) {
  if (all_.ahead_ && all_.ahead_->on_end(stream)) return;
  Exchange* const exchange = all_.exchanges_.of_server(stream);
  if (!exchange || exchange->client == 0 || !exchange->responded) return;
  exchange->down.ended = true;
  all_.store_if_whole(*exchange);
  all_.client_.resume(exchange->client);
}

void Streams::store_if_whole(Exchange& exchange) {
  if (exchange.incoming) exchange.incoming->store();
  exchange.incoming.reset();
}

void Streams::FromServer::on_closed(StreamId stream, std::uint32_t error) {
  if (all_.ahead_ && all_.ahead_->on_closed(all_.server_, stream)) return;
  Exchange* const exchange = all_.exchanges_.of_server(stream);
  if (!exchange) return;
  all_.exchanges_.leave(*exchange);
  exchange->incoming.reset();
  all_.content_.drop_up(*exchange);
  if (exchange->client != 0 && !(exchange->responded && exchange->down.ended))
    all_.resets_down_.reset(exchange->client, error == errors::none && !exchange->is_tunnel ? errors::internal : error,
                            kind_of(*exchange), exchange->down);
  else if (exchange->client != 0 && exchange->end_sent && !exchange->up.ended)
    all_.client_.reset(exchange->client, errors::none);
  all_.settle(*exchange);
}

void Streams::FromServer::on_sent(StreamId stream, std::size_t bytes) {
  Exchange* const exchange = all_.exchanges_.of_server(stream);
  if (exchange) all_.content_.on_sent_up(*exchange, bytes);
}

// ------------------------------------------------------------------------------------------------------ ends

void Streams::settle(Exchange& exchange) {
  if (exchange.client != 0 || exchange.server != 0) return;
  content_.forget(exchange);
  exchanges_.erase(exchange);
}

void Streams::use_store(bool on) {
  if (answers_.is_used() == on) return;
  answers_.use(on);
  if (on) return;
  drop_pending();
  client_.say_goodbye();
}

void Streams::drop_pending() {
  for (const auto& [stream, exchange] : exchanges_.all()) {
    exchange->incoming.reset();
    exchange->document.reset();
  }
}

// What it has answered is still delivered; the other streams end with the connection, as they would without
// this.
void Streams::server_ended() {
  requests_.server_ended();
  if (ahead_) ahead_->stop();
  drop_pending();
  client_.say_goodbye();
}

// The server's SETTINGS come after this half's own, so the client learns it from a second frame. A server that
// takes its offer back breaks RFC 8441, section 3, and loses its connection to the library.
void Streams::offer_tunnels() {
  if (offers_tunnels_ || !server_.peer_takes_tunnels()) return;
  offers_tunnels_ = true;
  client_.announce({{NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1}}, 0);
}

void Streams::to_client(Buffer& out, std::size_t enough) {
  resets_down_.drain(out, enough, [&](StreamId stream) {
    const Exchange* const exchange = exchanges_.of_client(stream);
    return exchange && exchange->client != 0;
  });
}

void Streams::to_server(Buffer& out, std::size_t enough) {
  resets_up_.drain(out, enough, [&](StreamId stream) { return exchanges_.of_server(stream) != nullptr; });
}

void Streams::review() {
  if (!requests_.is_server_gone() && server_.is_over()) server_ended();
}

bool Streams::is_over() const {
  if (client_.is_over()) return true;
  return requests_.is_server_gone() && std::ranges::none_of(exchanges_.all(), [](const auto& each) {
           return each.second->client != 0 && each.second->responded && each.second->down.ended;
         });
}

}  // namespace longhaul::http::h2
