// SPDX-License-Identifier: Apache-2.0
// Streams of the near half: requests that pushed objects answer.
#include <algorithm>

#include "proxy/modules/http/h2/blocks.h"
#include "proxy/modules/http/h2/streams.h"

namespace longhaul::http::h2 {

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
    if (is_on_ && answer_from_pushed(*exchange)) continue;
    ask(*exchange);
  }
}

}  // namespace longhaul::http::h2
