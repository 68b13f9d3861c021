// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/pushed.h"

#include <utility>

#include "proxy/modules/http/prefetch/asked.h"

namespace longhaul::http {
namespace {

constexpr std::size_t kClientBytes = std::tuple_size_v<modules::Address>;

}  // namespace

PushedObject PushedStore::announce(TimePoint now, const modules::Address& client, const std::string& key, RequestHead asked,
                                   Progress progress) {
  sweep(now);
  const std::string of_client = text_of(client);
  if (const auto earlier = objects_.find(of_client + key); earlier != objects_.end()) drop(PushedObject(earlier->second));
  const std::size_t asked_bytes = sizeof(Pushed) + memory_bytes(asked) + 2 * (of_client.size() + key.size());
  Client& counted = clients_[of_client];
  const bool fits = objects_.size() < kMost && counted.objects < kMostOfClient &&
                    bytes_ + asked_bytes <= most_bytes_ && counted.bytes + asked_bytes <= most_bytes_ / 2;
  if (!fits) {
    if (counted.objects == 0) clients_.erase(of_client);
    return nullptr;
  }
  const auto object = std::make_shared<Pushed>();
  object->asked = std::move(asked);
  object->asked_bytes = asked_bytes;
  counted.bytes += asked_bytes;
  bytes_ += asked_bytes;
  object->progress = std::move(progress);
  object->key = of_client + key;
  object->until = now + kMostComing;
  object->place = coming_.insert(coming_.end(), object);
  ++counted.objects;
  objects_[object->key] = object;
  return object;
}

bool PushedStore::add(Pushed& object, Bytes content) {
  if (object.state != Pushed::State::coming) return false;
  Client& client = clients_[object.key.substr(0, kClientBytes)];
  const bool fits = object.bytes + content.size() <= kMostObjectBytes && bytes_ + content.size() <= most_bytes_ &&
                    client.bytes + content.size() <= most_bytes_ / 2;
  if (!fits) {
    drop(PushedObject(objects_.at(object.key)));
    return false;
  }
  object.content.add(content);
  object.bytes += content.size();
  client.bytes += content.size();
  bytes_ += content.size();
  return true;
}

void PushedStore::finish(TimePoint now, const PushedObject& object, Stored response) {
  if (object->state != Pushed::State::coming) return;
  response.content_bytes = object->content.size();
  response.content = object->content.take();
  object->head = {};
  object->response = std::make_shared<const Stored>(std::move(response));
  object->state = Pushed::State::whole;
  object->until = now + kKept;
  whole_.splice(whole_.end(), coming_, object->place);
}

void PushedStore::remove(const PushedObject& object) {
  if (object->state == Pushed::State::gone) return;
  const auto client = clients_.find(object->key.substr(0, kClientBytes));
  client->second.bytes -= object->bytes + object->asked_bytes;
  bytes_ -= object->bytes + object->asked_bytes;
  if (--client->second.objects == 0) clients_.erase(client);
  (object->state == Pushed::State::coming ? coming_ : whole_).erase(object->place);
  object->state = Pushed::State::gone;
  object->asked = {};
  object->head = {};
  object->content = {};
  objects_.erase(object->key);
}

void PushedStore::drop(const PushedObject& object) {
  if (object->state == Pushed::State::gone) return;
  if (object->state == Pushed::State::whole) ++wasted_.objects;
  wasted_.bytes += object->bytes;
  remove(object);
  object->response.reset();
}

void PushedStore::use(const PushedObject& object) { remove(object); }

void PushedStore::drop_all(const modules::Address& client, const std::string& keys_begin) {
  const std::string begin = text_of(client) + keys_begin;
  for (auto each = objects_.lower_bound(begin); each != objects_.end() && each->first.starts_with(begin);) {
    const PushedObject object = each->second;
    ++each;
    drop(object);
  }
}

void PushedStore::clear() {
  while (!objects_.empty()) drop(PushedObject(objects_.begin()->second));
}

PushedObject PushedStore::find(TimePoint now, const modules::Address& client, const std::string& key) {
  sweep(now);
  const auto found = objects_.find(text_of(client) + key);
  return found == objects_.end() ? nullptr : found->second;
}

PushedObject PushedStore::find_for(TimePoint now, const modules::Address& client, const std::string& key,
                                   const RequestHead& request) {
  if (!has_any(client) || !may_answer(request)) return nullptr;
  const PushedObject found = find(now, client, key);
  const bool is_same = found && is_same_asked(found->asked, request) &&
                       (found->state != Pushed::State::whole || varies_alike(*found->response, request));
  return is_same ? found : nullptr;
}

PushedStore::Wasted PushedStore::take_wasted(TimePoint now) {
  sweep(now);
  return std::exchange(wasted_, {});
}

void PushedStore::sweep(TimePoint now) {
  for (auto* const each : {&coming_, &whole_})
    while (!each->empty() && each->front()->until <= now) drop(PushedObject(each->front()));
}

}  // namespace longhaul::http
