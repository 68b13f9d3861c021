// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/ahead.h"

#include "proxy/modules/http/h2/blocks.h"
#include "proxy/modules/http/prefetch/asked.h"

namespace longhaul::http::h2 {

void Ahead::read(TimePoint now, Fetching::Document& document, Bytes content) {
  for (const Announced& found : fetching_.read(now, document, content)) pushing_.tell(found);
}

void Ahead::fetch(Session& server) {
  while (streams_.size() < kMostStreams) {
    auto next = fetching_.next();
    pushing_.dropped(fetching_);
    if (!next) return;
    const auto stream = server.request(block_of(next->asked, scheme_), nullptr);
    if (!stream) {
      pushing_.dropped(next->number);
      continue;
    }
    ++injected_;
    streams_.emplace(*stream, Stream{.object = *std::move(next), .document = {}});
  }
}

void Ahead::stop() {
  fetching_.give_up();
  fetching_.drop_all();
  pushing_.dropped(fetching_);
  for (auto& [stream, object] : streams_)
    if (!object.ended) pushing_.dropped(object.object.number);
  streams_.clear();
}

// Ends the object. The stream stays in streams_ until it is closed.
void Ahead::drop(Session& server, StreamId stream, Stream& object) {
  if (std::exchange(object.ended, true)) return;
  object.is_used = false;
  object.document.reset();
  pushing_.dropped(object.object.number);
  server.reset(stream, errors::cancel);
}

bool Ahead::on_headers(TimePoint now, Session& server, StreamId stream, const Fields& block, bool ends) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return false;
  Stream& object = found->second;
  if (object.ended) return true;
  const auto response = response_of(block);
  if (response && response->status < 200) return true;
  // A second head would be trailers.
  const bool fits = response && !object.is_used && response->status == 200 && varies_with(response->fields) &&
                    !authenticates_connection(response->fields);
  if (!fits) {
    drop(server, stream, object);
    return true;
  }
  object.is_used = true;
  object.document = fetching_.begins(object.object, *response);
  fetching_.fetched(now, object.object, *response);
  const std::string head = head_text(*response);
  pushing_.piece(object.object.number, std::as_bytes(std::span(head)), false);
  return ends ? on_end(stream) : true;
}

bool Ahead::on_data(TimePoint now, Session& server, StreamId stream, Bytes bytes) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return false;
  server.consumed(stream, bytes.size());
  Stream& object = found->second;
  if (object.ended || !object.is_used) return true;
  object.bytes += bytes.size();
  fetching_.count(bytes.size());
  if (object.bytes > PushedStore::kMostObjectBytes) {
    drop(server, stream, object);
    return true;
  }
  if (object.document) read(now, *object.document, bytes);
  pushing_.piece(object.object.number, bytes, false);
  return true;
}

bool Ahead::on_end(StreamId stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return false;
  Stream& object = found->second;
  if (object.is_used && !std::exchange(object.ended, true)) pushing_.piece(object.object.number, {}, true);
  return true;
}

bool Ahead::on_closed(Session& server, StreamId stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return false;
  if (!found->second.ended) pushing_.dropped(found->second.object.number);
  streams_.erase(found);
  fetch(server);
  return true;
}

}  // namespace longhaul::http::h2
