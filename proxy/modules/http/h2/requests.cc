// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/requests.h"

#include <utility>

#include "proxy/modules/http/h2/blocks.h"

namespace longhaul::http::h2 {

void Requests::open(TimePoint now, StreamId stream, Fields block, bool ends) {
  // Those that the client has reset and the server does not know of yet.
  if (exchanges_.size() >= 2 * kMostStreams) return client_.reset(stream, errors::refused);
  Exchange& exchange = exchanges_.open(stream, std::move(block));
  exchange.asks = !ends;
  exchange.is_tunnel = exchange.block.value(":method") == "CONNECT";
  if (exchange.is_tunnel) client_.add_tunnel(stream);
  exchange.up.ended = ends;
  exchange.request = request_of(exchange.block, place_.scheme());
  answers_.begin(exchange);
  const bool may_be_here =
      exchange.request && ends && answers_.is_used() && !is_late_ && may_answer(*exchange.request);
  if (may_be_here && answer_here(now, exchange)) return;
  ask(exchange);
}

// Also true if the request waits.
bool Requests::answer_here(TimePoint now, Exchange& exchange) {
  Fields block;
  switch (answers_.find(now, exchange, block)) {
    case LocalAnswers::Found::answer:
      respond(exchange, block);
      return true;
    case LocalAnswers::Found::later:
      waiting_.push_back(exchange.client);
      return true;
    default:
      return false;
  }
}

void Requests::respond(Exchange& exchange, const Fields& block) {
  client_.respond(exchange.client, block, exchange.down.pieces.empty() ? nullptr : &exchange.down);
}

void Requests::look(TimePoint now) {
  for (const StreamId stream : std::exchange(waiting_, {})) {
    Exchange* const exchange = exchanges_.of_client(stream);
    if (!exchange || exchange->server != 0 || exchange->responded) continue;
    if (answers_.is_used() && answer_here(now, *exchange)) continue;
    ask(*exchange);
  }
}

void Requests::ask(Exchange& exchange) {
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
  exchanges_.join(exchange, *stream);
}

}  // namespace longhaul::http::h2
