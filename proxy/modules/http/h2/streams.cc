// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/streams.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>

#include "proxy/modules/http/h2/blocks.h"
#include "proxy/modules/http/h2/early.h"

namespace longhaul::http::h2 {
namespace {

constexpr std::size_t kExchangeBytes = 1024;  // about, without its fields

std::size_t memory_of(const Fields& fields) {
  std::size_t bytes = 0;
  for (const Field& field : fields.all()) bytes += sizeof field + field.name.size() + field.value.size();
  return bytes;
}

Session::Settings for_server(std::int32_t window) {
  return {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
          {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(window)},
          {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, Session::kMostBlockBytes}};
}

Session::Settings for_client(std::int32_t window) {
  return {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, Streams::kMostStreams},
          {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(window)},
          {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, Session::kMostBlockBytes},
          {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
}

}  // namespace

Streams::Streams(const Place& place, std::shared_ptr<Site> site, Receiving& receiving)
    : place_(place), site_(std::move(site)), receiving_(&receiving) {
  client_.announce(for_client(kUpWindow), kAllUpWindow);
}

// Towards the near half: the near half's own windows limit what crosses the line.
Streams::Streams(const Place& place, std::shared_ptr<Site> site, Ahead& ahead)
    : place_(place), site_(std::move(site)), ahead_(&ahead), is_on_(false) {
  client_.announce(for_client(kLanWindow), kAllLanWindow);
}

void Streams::begin() {
  if (ahead_)
    server_.announce(for_server(kLanWindow), kAllLanWindow);
  else
    server_.announce(for_server(kDownWindow), kAllDownWindow);
}

// The requests get the client's own names for streams, and the server's view of the windows is the client's:
// what this half would have said is what the server has heard already, so it is dropped.
bool Streams::take_over(TimePoint now, Bytes at_server) {
  const auto early = read_early(at_server);
  if (!early) return false;
  now_ = now;
  is_late_ = true;
  if (early->settings) server_.announce(*early->settings, 0);
  const bool is_understood = client_.feed(at_server) && !client_.has_complained();
  Buffer heard;
  server_.drain(heard, ~std::size_t{0});
  for (const auto& [stream, more] : early->windows) server_.widen(stream, more);
  server_.drain(heard, ~std::size_t{0});
  is_late_ = false;
  const bool is_same = exchanges_.size() == early->requests && by_server_.size() == early->requests;
  if (!is_understood || !is_same || server_.has_complained()) return false;
  server_.announce(for_server(kDownWindow), kAllDownWindow);
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

Streams::Exchange* Streams::of_client(StreamId stream) {
  const auto found = exchanges_.find(stream);
  return found == exchanges_.end() ? nullptr : found->second.get();
}

Streams::Exchange* Streams::of_server(StreamId stream) {
  const auto found = by_server_.find(stream);
  return found == by_server_.end() ? nullptr : found->second;
}

std::size_t Streams::state_bytes() const {
  std::uint64_t coming = 0;
  for (const auto& [stream, exchange] : exchanges_)
    if (exchange->incoming) coming += exchange->incoming->bytes();
  return exchanges_bytes_ + static_cast<std::size_t>(up_bytes_ + coming);
}

// ------------------------------------------------------------------------------------------- from the client

void Streams::FromClient::on_headers(StreamId stream, Fields block, bool ends) {
  Exchange* const exchange = all_.of_client(stream);
  if (!exchange) return all_.open(stream, std::move(block), ends);
  exchange->up.trailers = std::move(block);
  on_end(stream);
}

void Streams::open(StreamId stream, Fields block, bool ends) {
  // Those that the client has reset and the server does not know of yet.
  if (exchanges_.size() >= 2 * kMostStreams) return client_.reset(stream, errors::refused);
  const auto [place, is_new] = exchanges_.try_emplace(stream, std::make_unique<Exchange>());
  Exchange& exchange = *place->second;
  exchange.client = stream;
  exchange.asks = !ends;
  exchange.is_tunnel = block.value(":method") == "CONNECT";
  if (exchange.is_tunnel) client_.add_tunnel(stream);
  exchange.up.ended = ends;
  exchange.erasures = site_->store.erasures();
  exchange.request = request_of(block, place_.scheme());
  exchange.block = std::move(block);
  exchange.bytes = kExchangeBytes + 2 * memory_of(exchange.block);
  exchanges_bytes_ += exchange.bytes;
  if (exchange.request) exchange.key = place_.key_of(*exchange.request);
  if (exchange.request && receiving_) receiving_->note_request(*exchange.request);
  if (exchange.request && ends && is_on_ && !is_late_ && may_answer(*exchange.request)) {
    if (answer_here(exchange)) return;
  }
  ask(exchange);
}

bool Streams::answer_from_store(Exchange& exchange, const Object& object) {
  const RequestHead& request = *exchange.request;
  if (!is_fresh_for(*object, request, now_)) return false;
  if (request.fields.has("range") && !is_at_client(*object, request) && !part_of(*object, request))
    return false;
  ++counters_.cache_hits;
  ++counters_.round_trips_saved;
  send(exchange, object, "hit");
  return true;
}

void Streams::send(Exchange& exchange, const Object& object, std::string_view note) {
  const RequestHead& request = *exchange.request;
  const bool not_modified = is_at_client(*object, request);
  const auto part = not_modified ? std::nullopt : part_of(*object, request);
  const Part sent = not_modified ? Part{} : part.value_or(Part{0, object->content_bytes});
  counters_.cache_bytes += sent.size;
  send_content(exchange, *object, sent,
               block_of(answer_of(*object, now_, {.not_modified = not_modified, .part = part, .note = note})));
}

void Streams::send_content(Exchange& exchange, const Stored& object, Part rest, const Fields& block) {
  for (const Slice& piece : object.content) {
    const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(rest.first, piece.size()));
    const auto sent = static_cast<std::size_t>(std::min<std::uint64_t>(rest.size, piece.size() - skipped));
    exchange.down.add(piece.sub(skipped, sent));
    rest.first -= skipped;
    rest.size -= sent;
  }
  exchange.down.ended = exchange.responded = exchange.is_from_store = true;
  client_.respond(exchange.client, block, exchange.down.pieces.empty() ? nullptr : &exchange.down);
}

void Streams::ask(Exchange& exchange) {
  Fields block = exchange.block;
  if (exchange.asked_about) {
    Field question = question_field(*exchange.asked_about);
    block.add({lower(question.name), std::move(question.value)});
  } else {
    exchange.block = {};
  }
  if (is_late_) server_.use_next(exchange.client);
  const auto stream =
      server_gone_ ? std::nullopt : server_.request(block, exchange.asks ? &exchange.up : nullptr);
  if (!stream) return client_.reset(exchange.client, errors::refused);
  exchange.server = *stream;
  by_server_[*stream] = &exchange;
}

void Streams::FromClient::on_data(StreamId stream, Bytes bytes) {
  Exchange* const exchange = all_.of_client(stream);
  if (!exchange || exchange->server == 0) return all_.client_.consumed(stream, bytes.size());
  exchange->up.add_copy(bytes);
  all_.up_bytes_ += bytes.size();
  all_.server_.resume(exchange->server);
}

void Streams::FromClient::on_end(StreamId stream) {
  Exchange* const exchange = all_.of_client(stream);
  if (!exchange) return;
  exchange->up.ended = true;
  if (exchange->server != 0) all_.server_.resume(exchange->server);
}

void Streams::FromClient::on_closed(StreamId stream, std::uint32_t error) {
  Exchange* const exchange = all_.of_client(stream);
  // A reset may also say that nothing is wrong.
  const bool is_cut = exchange && exchange->server != 0 && !(exchange->up.ended && exchange->end_sent);
  if (error != errors::none || is_cut) all_.count_reset();
  if (!exchange) return;
  exchange->client = 0;
  all_.forget_down(*exchange);
  if (exchange->server != 0 && (error != errors::none || is_cut)) all_.reset_server(*exchange, error);
  all_.settle(*exchange);
}

// Of a response: as much more may come.
void Streams::FromClient::on_sent(StreamId stream, std::size_t bytes) {
  Exchange* const exchange = all_.of_client(stream);
  if (!exchange || exchange->is_from_store) return;
  all_.down_bytes_ -= bytes;
  all_.server_.consumed(exchange->server, bytes);
}

// The server has answered without having read everything: the client need not send the rest (RFC 9113,
// section 8.1).
void Streams::FromClient::on_end_sent(StreamId stream) {
  Exchange* const exchange = all_.of_client(stream);
  if (!exchange) return;
  exchange->end_sent = true;
  if (exchange->server == 0 && !exchange->up.ended) all_.client_.reset(stream, errors::none);
}

void Streams::count_reset() {
  const double seconds = std::chrono::duration<double>(now_ - resets_at_).count();
  resets_left_ = std::min<double>(kMostResets, resets_left_ + seconds * kResetsPerSecond);
  resets_at_ = now_;
  if ((resets_left_ -= 1) < 0) client_.terminate(errors::calm);
}

// ------------------------------------------------------------------------------------------- from the server

void Streams::FromServer::on_headers(StreamId stream, Fields block, bool ends) {
  if (all_.ahead_ && all_.ahead_->on_headers(all_.now_, all_.server_, stream, block, ends)) return;
  Exchange* const exchange = all_.of_server(stream);
  if (!exchange || exchange->client == 0) return;
  if (!exchange->responded) return all_.take_response(*exchange, block, ends);
  exchange->incoming.reset();  // with trailers it is not stored
  if (exchange->is_from_store) return;
  exchange->down.trailers = std::move(block);
  on_end(stream);
}

void Streams::inform(Exchange& exchange, const Fields& block) {
  exchange.informed_bytes += memory_of(block);
  exchange.is_refused = ++exchange.informed > kMostInformed || exchange.informed_bytes > kMostInformedBytes;
  exchange.is_refused ? server_.reset(exchange.server, errors::protocol) : client_.inform(exchange.client, block);
}

void Streams::take_response(Exchange& exchange, const Fields& block, bool ends) {
  if (exchange.is_refused) return;
  const auto response = response_of(block);
  if (!response) return server_.reset(exchange.server, errors::protocol);
  if (response->status < 200) return inform(exchange, block);
  if (exchange.request && receiving_) place_.invalidate(site_->store, *exchange.request, *response);
  if (response->status == 304 && exchange.asked_about) return take_not_modified(exchange, *response, ends);
  exchange.responded = true;
  exchange.down.ended = ends;
  if (ahead_ && exchange.request) exchange.document = ahead_->begins(now_, *exchange.request, *response);
  client_.respond(exchange.client, block, ends ? nullptr : &exchange.down);
  const Seconds wall = site_->wall();
  if (is_on_ && exchange.request && !exchange.asks && may_store(*exchange.request, *response, wall))
    exchange.incoming.emplace(site_, exchange.key, exchange.erasures,
                              to_store(*exchange.request, *response, now_, wall), uses_disk_);
  if (ends) store_if_whole(exchange);
}

void Streams::take_not_modified(Exchange& exchange, const ResponseHead& response, bool ends) {
  const Object asked_about = std::exchange(exchange.asked_about, nullptr);
  auto fresh = validated(*asked_about, response, now_, site_->wall());
  if (!ends) server_.reset(exchange.server, errors::cancel);
  leave(exchange, exchange.server);
  if (!fresh) {
    // It speaks of other content than was asked about: the request as the client made it gets an answer.
    site_->store.erase(exchange.key);
    exchange.erasures = site_->store.erasures();
    return ask(exchange);
  }
  fresh->in_memory_only |= !uses_disk_;
  const auto object = std::make_shared<const Stored>(std::move(*fresh));
  ++counters_.cache_validations;
  const bool is_current = !site_->store.was_erased(exchange.key, exchange.erasures);
  if (is_current &&
      may_store(*exchange.request, {.status = 200, .phrase = {}, .fields = object->fields}, site_->wall()))
    site_->store.put(exchange.key, *object);
  send(exchange, object, "fwd=stale;fwd-status=304");
}

// Its answer has been used: what else comes on that stream is nobody's.
void Streams::leave(Exchange& exchange, StreamId server) {
  by_server_.erase(server);
  exchange.server = 0;
}

void Streams::FromServer::on_data(StreamId stream, Bytes bytes) {
  if (all_.ahead_ && all_.ahead_->on_data(all_.now_, all_.server_, stream, bytes)) return;
  Exchange* const exchange = all_.of_server(stream);
  if (!exchange || exchange->client == 0 || !exchange->responded)
    return all_.server_.consumed(stream, bytes.size());
  if (exchange->incoming && !exchange->incoming->add(bytes)) exchange->incoming.reset();
  if (exchange->document) all_.ahead_->read(all_.now_, *exchange->document, bytes);
  exchange->down.add_copy(bytes);
  all_.down_bytes_ += bytes.size();
  all_.client_.resume(exchange->client);
}

void Streams::FromServer::on_end(StreamId stream) {
  if (all_.ahead_ && all_.ahead_->on_end(stream)) return;
  Exchange* const exchange = all_.of_server(stream);
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
  Exchange* const exchange = all_.of_server(stream);
  if (!exchange) return;
  all_.leave(*exchange, stream);
  exchange->incoming.reset();
  all_.up_bytes_ -= exchange->up.bytes();
  all_.client_.consumed(exchange->client, static_cast<std::size_t>(exchange->up.bytes()));
  exchange->up.clear();
  if (exchange->client != 0 && !(exchange->responded && exchange->down.ended))
    all_.reset_client(*exchange, error == errors::none && !exchange->is_tunnel ? errors::internal : error);
  else if (exchange->client != 0 && exchange->end_sent && !exchange->up.ended)
    all_.client_.reset(exchange->client, errors::none);
  all_.settle(*exchange);
}

void Streams::FromServer::on_sent(StreamId stream, std::size_t bytes) {
  Exchange* const exchange = all_.of_server(stream);
  if (!exchange) return;
  all_.up_bytes_ -= bytes;
  all_.client_.consumed(exchange->client, bytes);
}

// ------------------------------------------------------------------------------------------------------ ends

// The client does not want the rest; the server may send as much more on other streams.
void Streams::forget_down(Exchange& exchange) {
  exchange.incoming.reset();
  if (!exchange.is_from_store) {
    down_bytes_ -= exchange.down.bytes();
    server_.consumed(exchange.server, static_cast<std::size_t>(exchange.down.bytes()));
  }
  exchange.down.clear();
}

void Streams::settle(Exchange& exchange) {
  if (exchange.client != 0 || exchange.server != 0) return;
  up_bytes_ -= exchange.up.bytes();
  exchanges_bytes_ -= exchange.bytes;
  std::erase_if(exchanges_, [&](const auto& each) { return each.second.get() == &exchange; });
}

void Streams::use_store(bool on) {
  if (is_on_ == on) return;
  is_on_ = on;
  if (on) return;
  drop_pending();
  client_.say_goodbye();
}

void Streams::drop_pending() {
  for (const auto& [stream, exchange] : exchanges_) {
    exchange->incoming.reset();
    exchange->document.reset();
  }
}

// What it has answered is still delivered; the other streams end with the connection, as they would without
// this.
void Streams::server_ended() {
  server_gone_ = true;
  if (ahead_) ahead_->stop();
  drop_pending();
  client_.say_goodbye();
}

void Streams::review() {
  if (!server_gone_ && server_.is_over()) server_ended();
}

bool Streams::is_over() const {
  if (client_.is_over()) return true;
  return server_gone_ && std::ranges::none_of(exchanges_, [](const auto& each) {
           return each.second->client != 0 && each.second->responded && each.second->down.ended;
         });
}

}  // namespace longhaul::http::h2
