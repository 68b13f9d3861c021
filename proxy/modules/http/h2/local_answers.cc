// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/local_answers.h"

#include <algorithm>

#include "proxy/modules/http/h2/blocks.h"
#include "proxy/modules/http/stored_answer.h"

namespace longhaul::http::h2 {
namespace {

void take_content(Exchange& exchange, const Stored& object, Part rest) {
  for (const Slice& piece : object.content) {
    const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(rest.first, piece.size()));
    const auto sent = static_cast<std::size_t>(std::min<std::uint64_t>(rest.size, piece.size() - skipped));
    exchange.down.add(piece.sub(skipped, sent));
    rest.first -= skipped;
    rest.size -= sent;
  }
  exchange.down.ended = exchange.responded = exchange.is_from_store = true;
}

}  // namespace

void LocalAnswers::begin(Exchange& exchange) const {
  exchange.erasures = site_->store.erasures();
  if (!exchange.request) return;
  exchange.key = place_.key_of(*exchange.request);
  if (receiving_) receiving_->note_request(*exchange.request);
}

LocalAnswers::Found LocalAnswers::find(TimePoint now, Exchange& exchange, Fields& block) {
  const RequestHead& request = *exchange.request;
  if (receiving_) {
    if (const Object object = receiving_->take(now, exchange.key, request)) {
      take_content(exchange, *object, {0, object->content_bytes});
      block = block_of(pushed_answer(*object));
      return Found::answer;
    }
    if (receiving_->must_wait(now, exchange.key, request)) return Found::later;
  }
  if (site_->disk && uses_disk_ &&
      exchange.disk_wait.must_wait(now, *site_->disk, site_->store, exchange.key, request))
    return Found::later;
  const Object object = site_->store.find(exchange.key, request);
  if (object && exchange.disk_wait.has_asked()) ++counters_.cache_disk_reads;
  if (object && answer_from_store(now, exchange, object, block)) return Found::answer;
  if (object && object->can_be_asked_about() && may_ask(request)) exchange.asked_about = object;
  return Found::nothing;
}

bool LocalAnswers::answer_from_store(TimePoint now, Exchange& exchange, const Object& object, Fields& block) {
  const RequestHead& request = *exchange.request;
  if (!is_fresh_for(*object, request, now)) return false;
  if (request.fields.has("range") && !is_at_client(*object, request) && !part_of(*object, request))
    return false;
  ++counters_.cache_hits;
  ++counters_.round_trips_saved;
  block = answer(now, exchange, *object, "hit");
  return true;
}

Fields LocalAnswers::answer(TimePoint now, Exchange& exchange, const Stored& object, std::string_view note) {
  const RequestHead& request = *exchange.request;
  const bool not_modified = is_at_client(object, request);
  const auto part = not_modified ? std::nullopt : part_of(object, request);
  const Part sent = not_modified ? Part{} : part.value_or(Part{0, object.content_bytes});
  counters_.cache_bytes += sent.size;
  take_content(exchange, object, sent);
  return block_of(answer_of(object, now, {.not_modified = not_modified, .part = part, .note = note}));
}

void LocalAnswers::note(const Exchange& exchange, const ResponseHead& response) const {
  if (exchange.request && receiving_) place_.invalidate(site_->store, *exchange.request, response);
}

void LocalAnswers::begin_to_store(TimePoint now, Exchange& exchange, const ResponseHead& response) const {
  const Seconds wall = site_->wall();
  if (is_on_ && exchange.request && !exchange.asks && may_store(*exchange.request, response, wall))
    exchange.incoming.emplace(site_, exchange.key, exchange.erasures,
                              to_store(*exchange.request, response, now, wall), uses_disk_);
}

LocalAnswers::Found LocalAnswers::take_not_modified(TimePoint now, Exchange& exchange,
                                                    const ResponseHead& response, Fields& block) {
  const Object asked_about = std::exchange(exchange.asked_about, nullptr);
  auto fresh = validated(*asked_about, response, now, site_->wall());
  if (!fresh) {
    // It refers to other content than the condition: the client's unchanged request gets the response.
    site_->store.erase(exchange.key);
    exchange.erasures = site_->store.erasures();
    return Found::nothing;
  }
  fresh->in_memory_only |= !uses_disk_;
  const auto object = std::make_shared<const Stored>(std::move(*fresh));
  ++counters_.cache_validations;
  const bool is_current = !site_->store.was_erased(exchange.key, exchange.erasures);
  if (is_current &&
      may_store(*exchange.request, {.status = 200, .phrase = {}, .fields = object->fields}, site_->wall()))
    site_->store.put(exchange.key, *object);
  block = answer(now, exchange, *object, "fwd=stale;fwd-status=304");
  return Found::answer;
}

}  // namespace longhaul::http::h2
