// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/local_answers.h"

#include <utility>

namespace longhaul::http {
namespace {

bool can_answer(const Stored& object, const RequestHead& request, modules::TimePoint now) {
  if (!is_fresh_for(object, request, now)) return false;
  return !request.fields.has("range") || is_at_client(object, request) || part_of(object, request);
}

}  // namespace

bool LocalAnswers::must_wait(TimePoint now, const RequestHead& request) {
  const std::string key = place_.key_of(request);
  if (receiving_.must_wait(now, key, request)) return true;
  return disk() && disk_wait_.must_wait(now, *disk(), site_->store, key, request);
}

LocalAnswers::Outcome LocalAnswers::take(TimePoint now, const std::string& key, const RequestHead& request,
                                         Allowed allowed) {
  const bool was_read = std::exchange(disk_wait_, {}).has_asked();
  receiving_.note_request(request);
  if (allowed == Allowed::nothing || !may_answer(request)) return {};
  if (allowed == Allowed::answer) {
    if (const Object pushed = receiving_.take(now, key, request)) {
      const bool closes_after = closes(request.fields, request.minor);
      client_.answer(pushed_head(*pushed, closes_after), *pushed, {0, pushed->content_bytes});
      return {.is_answered = true, .closes = closes_after, .ask_about = {}};
    }
  }
  const Object object = site_->store.find(key, request);
  if (!object) return {};
  if (was_read) ++counters_.cache_disk_reads;
  if (allowed == Allowed::answer && can_answer(*object, request, now)) {
    ++counters_.cache_hits;
    ++counters_.round_trips_saved;
    return {.is_answered = true, .closes = send(now, request, *object, "hit"), .ask_about = {}};
  }
  if (object->can_be_asked_about() && may_ask(request)) return {.ask_about = object};
  return {};
}

Object LocalAnswers::take_not_modified(TimePoint now, const Awaited& asked, const ResponseHead& response,
                                       bool stores) {
  auto fresh = validated(*asked.asked_about, response, now, site_->wall());
  if (!fresh) {
    site_->store.erase(asked.key);
    return nullptr;
  }
  fresh->in_memory_only |= !uses_disk_;
  auto object = std::make_shared<const Stored>(std::move(*fresh));
  ++counters_.cache_validations;
  const bool is_current = stores && !site_->store.was_erased(asked.key, asked.erasures);
  const ResponseHead stored{.status = 200, .phrase = {}, .fields = object->fields};
  if (is_current && may_store(asked.request, stored, site_->wall())) site_->store.put(asked.key, *object);
  return object;
}

bool LocalAnswers::send(TimePoint now, const RequestHead& request, const Stored& object,
                        std::string_view note) {
  const bool closes_after = closes(request.fields, request.minor),
             not_modified = is_at_client(object, request);
  const auto part = not_modified ? std::nullopt : part_of(object, request);
  Slice head = answer_head(
      object, now, {.not_modified = not_modified, .part = part, .closes = closes_after, .note = note});
  if (not_modified) {
    client_.answer(std::move(head));
  } else {
    const Part sent = part.value_or(Part{0, object.content_bytes});
    counters_.cache_bytes += sent.size;
    client_.answer(std::move(head), object, sent);
  }
  return closes_after;
}

}  // namespace longhaul::http
