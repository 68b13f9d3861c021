// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/receiving.h"

#include <algorithm>

#include "proxy/modules/http/prefetch/asked.h"

namespace longhaul::http {
namespace {

constexpr std::size_t kMostAnnounced = 4 * Announced::kMostTargets;  // pending, on one connection

std::string_view lines_in(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

Receiving::Receiving(std::shared_ptr<Site> site, const Place& place, const modules::Address& client)
    : site_(std::move(site)), place_(place), client_(client) {}

bool Receiving::from_twin(TimePoint now, Bytes bytes) {
  const auto message = twin::decode<Message>(bytes);
  if (!message || piece_left_ > 0) return false;
  *progress_ = now;
  if (const auto* announced = std::get_if<Announced>(&*message)) return announce(now, *announced);
  if (const auto* piece = std::get_if<Piece>(&*message)) {
    if (!begin_piece(*piece)) return false;
    if (piece->bytes == 0) take_piece(now, {});
    return true;
  }
  if (const auto* whole = std::get_if<WholePiece>(&*message)) {
    if (whole->content.size() > Piece::kMostBytes) return false;
    const auto size = static_cast<std::uint32_t>(whole->content.size());
    if (!begin_piece({.number = whole->number, .bytes = size, .is_last = whole->is_last})) return false;
    piece_left_ = 0;
    take_piece(now, whole->content.bytes());
    return true;
  }
  const std::uint64_t number = std::get<Dropped>(*message).number;
  if (const auto object = of(number)) {
    site_->pushed.drop(object);
    announced_[number - first_].reset();
  }
  while (!announced_.empty() && !announced_.front()) announced_.pop_front(), ++first_;
  return number < first_ + announced_.size();
}

bool Receiving::announce(TimePoint now, const Announced& said) {
  const auto asked = read_request(said.asked.bytes());
  if (!asked || said.targets.size() > Announced::kMostBytes) return false;
  const bool is_used = is_on_ && said.asked.size() <= kMostAskedBytes;
  std::string_view rest = lines_in(said.targets.bytes());
  std::size_t count = 0;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos || end == 0 || ++count > Announced::kMostTargets || announced_.size() >= kMostAnnounced)
      return false;
    RequestHead each = *asked;
    each.target = std::string(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    const std::string key = place_.key_of(each);
    announced_.push_back(is_used ? site_->pushed.announce(now, client_, key, std::move(each), progress_)
                                 : nullptr);
    if (announced_.back()) announced_.back()->erasures = site_->store.erasures();
  }
  site_->store.leave_room(site_->pushed.bytes());
  return true;
}

PushedObject Receiving::of(std::uint64_t number) const {
  const bool is_known = number >= first_ && number - first_ < announced_.size();
  return is_known ? announced_[number - first_] : nullptr;
}

bool Receiving::begin_piece(const Piece& piece) {
  if (piece.number >= first_ + announced_.size() || piece.bytes > Piece::kMostBytes) return false;
  piece_ = piece;
  piece_left_ = piece.bytes;
  counters_.ahead_bytes += piece.bytes;
  return true;
}

Slice Receiving::from_stream(TimePoint now, Slice bytes) {
  if (piece_left_ == 0) return bytes;
  const std::size_t part = std::min<std::size_t>(piece_left_, bytes.size());
  piece_left_ -= static_cast<std::uint32_t>(part);
  *progress_ = now;
  take_piece(now, bytes.bytes().first(part));
  return bytes.from(part);
}

void Receiving::take_piece(TimePoint now, Bytes bytes) {
  const PushedObject object = of(piece_->number);
  const bool is_last = piece_->is_last && piece_left_ == 0;
  if (object && object->state == Pushed::State::coming) {
    const bool had_head = head_size(object->head) > 0;
    if (had_head) {
      site_->pushed.add(*object, bytes);
    } else {
      append(object->head, bytes);
      const std::size_t size = head_size(object->head);
      if (size > 0) {
        const Buffer begun(object->head.begin() + static_cast<std::ptrdiff_t>(size), object->head.end());
        object->head.resize(size);
        site_->pushed.add(*object, begun);
      } else if (object->head.size() > kMostHeadBytes) {
        site_->pushed.drop(object);
      }
    }
    site_->store.leave_room(site_->pushed.bytes());
    if (is_last) finish(now, object);
  }
  if (!is_last) return;
  if (object) announced_[piece_->number - first_].reset();
  while (!announced_.empty() && !announced_.front()) announced_.pop_front(), ++first_;
}

void Receiving::finish(TimePoint now, const PushedObject& object) {
  if (object->state != Pushed::State::coming) return;
  const auto response = read_response(object->head);
  const bool fits = response && response->status == 200 && varies_with(response->fields) &&
                    (!response->fields.has("content-length") ||
                     response->fields.value("content-length") == std::to_string(object->content.size()));
  if (!fits) return site_->pushed.drop(object);
  ++counters_.objects_ahead;
  const Seconds wall = site_->wall();
  Stored stored = to_store(object->asked, *response, now, wall);
  stored.in_memory_only = !uses_disk_;
  const std::string key = place_.key_of(object->asked);
  site_->pushed.finish(now, object, std::move(stored));
  if (may_store(object->asked, *response, wall) && !site_->store.was_erased(key, object->erasures))
    site_->store.put(key, *object->response);
}

void Receiving::end() {
  for (const PushedObject& each : announced_)
    if (each && each->state == Pushed::State::coming) site_->pushed.drop(each);
  announced_.clear();
}

bool Receiving::must_wait(TimePoint now, const std::string& key, const RequestHead& request) {
  const PushedObject object = site_->pushed.find_for(now, client_, key, request);
  if (!object || object->state != Pushed::State::coming) return false;
  if (now - *object->progress <= kMostSilence) return true;
  site_->pushed.drop(object);
  return false;
}

Object Receiving::take(TimePoint now, const std::string& key, const RequestHead& request) {
  const PushedObject object = site_->pushed.find_for(now, client_, key, request);
  if (!object || object->state != Pushed::State::whole) return nullptr;
  const Object response = object->response;
  site_->pushed.use(object);
  ++counters_.objects_ahead_used;
  ++counters_.round_trips_saved;
  counters_.ahead_used_bytes += response->content_bytes;
  return response;
}

void Receiving::note_request(const RequestHead& request) {
  if (!may_have_any() || !changes_something(request)) return;
  site_->pushed.drop_all(client_, place_.keys_begin());
}

void Receiving::count_wasted(TimePoint now) {
  const auto wasted = site_->pushed.take_wasted(now);
  site_->store.leave_room(site_->pushed.bytes());
  counters_.objects_ahead_wasted += wasted.objects;
  counters_.ahead_wasted_bytes += wasted.bytes;
}

ResponseHead pushed_answer(const Stored& response) {
  ResponseHead head{.status = response.status, .phrase = response.phrase, .fields = {}};
  for (const Field& field : response.fields.all())
    if (!same_name(field.name, "content-length")) head.fields.add(field);
  head.fields.add({"Content-Length", std::to_string(response.content_bytes)});
  head.fields.add({"Cache-Status", "longhaul;hit;detail=prefetched"});
  return head;
}

Slice pushed_head(const Stored& response, bool closes) {
  ResponseHead head = pushed_answer(response);
  if (closes) head.fields.add({"Connection", "close"});
  const std::string text = head_text(head);
  return Slice::copy_of(std::as_bytes(std::span(text)));
}

}  // namespace longhaul::http
