// SPDX-License-Identifier: Apache-2.0
// Streams of the near half: requests that are answered here, or wait for what may answer them.
#include <algorithm>

#include "proxy/modules/http/h2/blocks.h"
#include "proxy/modules/http/h2/streams.h"

namespace longhaul::http::h2 {

// Also true if the request waits.
bool Streams::answer_here(Exchange& exchange) {
  if (answer_from_pushed(exchange)) return true;
  const RequestHead& request = *exchange.request;
  if (site_->disk && uses_disk_ && exchange.disk_wait.must_wait(now_, *site_->disk, site_->store, exchange.key, request)) {
    waiting_.push_back(exchange.client);
    return true;
  }
  const Object object = site_->store.find(exchange.key, request);
  if (object && exchange.disk_wait.has_asked()) ++counters_.cache_disk_reads;
  if (object && answer_from_store(exchange, object)) return true;
  if (object && object->can_be_asked_about() && may_ask(request)) exchange.asked_about = object;
  return false;
}

// Also true if the request waits for an object.
bool Streams::answer_from_pushed(Exchange& exchange) {
  if (!receiving_) return false;
  if (const Object object = receiving_->take(now_, exchange.key, *exchange.request)) {
    send_content(exchange, *object, {0, object->content_bytes}, block_of(pushed_answer(*object)));
    return true;
  }
  if (!receiving_->must_wait(now_, exchange.key, *exchange.request)) return false;
  waiting_.push_back(exchange.client);
  return true;
}

void Streams::look(TimePoint now) {
  now_ = now;
  for (const StreamId stream : std::exchange(waiting_, {})) {
    Exchange* const exchange = of_client(stream);
    if (!exchange || exchange->server != 0 || exchange->responded) continue;
    if (is_on_ && answer_here(*exchange)) continue;
    ask(*exchange);
  }
}

}  // namespace longhaul::http::h2
