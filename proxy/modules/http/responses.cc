// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/responses.h"

#include <utility>

namespace longhaul::http {

void Responses::await(Awaited request) {
  had_request_body_ |= request.has_body;
  awaited_.add(std::move(request));
}

Responses::Outcome Responses::from_server(TimePoint now, Slice bytes) {
  // The content of a response, which is most of what arrives, is not copied.
  if (in_response_ && !passes_ && held_.empty()) {
    const auto size = take_content(bytes.bytes());
    if (size) {
      to_client_.pass(bytes.sub(0, *size));
      bytes = bytes.from(*size);
    } else if (not_understood() == Outcome::failed) {
      return Outcome::failed;
    }
  }
  if (passes_) {
    to_client_.pass(std::move(bytes));
    return Outcome::goes_on;
  }
  append(held_, bytes.bytes());
  return waits_since_ ? Outcome::goes_on : read_on(now);
}

// As of when they arrived: waiting makes nothing fresher.
Responses::Outcome Responses::on_room() { return waits_since_ ? read_on(*waits_since_) : Outcome::goes_on; }

Responses::Outcome Responses::read_on(TimePoint now) {
  to_client_.begin_call();
  const Outcome outcome = read(now);
  storing_.count();
  if (outcome == Outcome::goes_on && ended_ && !waits_since_) end_client();
  return outcome;
}

Responses::Outcome Responses::read(TimePoint now) {
  waits_since_.reset();
  Taken taken = Taken::yes;
  std::size_t at = 0;  // of held_
  while (taken == Taken::yes && at < held_.size()) {
    const Bytes rest = Bytes(held_).subspan(at);
    if (in_response_) {
      const auto size = take_content(rest);
      if (size) to_client_.pass(Slice::copy_of(rest.first(*size)));
      if (!size) taken = Taken::not_understood;
      at += size.value_or(0);
      continue;
    }
    // Until the client has read (on_room()).
    if (to_client_.has_answered_enough() && awaits_any()) {
      waits_since_ = now;
      break;
    }
    const std::size_t size = head_size(rest);
    const bool too_long = (size == 0 ? rest.size() : size) > kMostHeadBytes;
    if (size == 0 && !too_long) break;
    taken = too_long ? Taken::not_understood : take_head(now, rest.first(size));
    if (taken == Taken::yes) at += size;
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at));
  if (taken == Taken::not_understood) return not_understood();
  return taken == Taken::failed ? Outcome::failed : Outcome::goes_on;
}

std::optional<std::size_t> Responses::take_content(Bytes bytes) {
  const auto size = body_.take(bytes, storing_.content());
  if (size && body_.done()) finish();
  return size;
}

// Not understood: it and all that follows passes as it is.
Responses::Taken Responses::take_head(TimePoint now, Bytes head) {
  const auto response = read_response(head);
  if (!response || !awaits_any()) return Taken::not_understood;
  const Awaited& exchange = awaited_.first();
  const auto framing = framing_of(*response, exchange.request.method);
  if (!framing || response->status == 101) return Taken::not_understood;
  if (response->status < 200) {
    to_client_.pass(Slice::copy_of(head));
    return Taken::yes;
  }
  place_.invalidate(site_->store, exchange.request, *response);
  if (response->status == 304 && exchange.asked_about) return take_not_modified(now, *response);

  to_client_.pass(Slice::copy_of(head));
  in_response_ = true;
  body_ = Body(*framing);
  storing_.drop();
  const bool has_end = framing->kind != Framing::Kind::until_close;
  const Seconds wall = site_->wall();
  const bool fits = has_end && framing->length <= site_->store.most_object_bytes();
  if (is_on_ && !had_request_body_ && fits && may_store(exchange.request, *response, wall))
    storing_.begin(to_store(exchange.request, *response, now, wall));
  if (body_.done()) finish();
  return Taken::yes;
}

Responses::Taken Responses::take_not_modified(TimePoint now, const ResponseHead& response) {
  Awaited& exchange = awaited_.first();
  const Object object = answers_.take_not_modified(now, exchange, response, !had_request_body_);
  if (object) {
    const RequestHead request = exchange.request;
    awaited_.pop_first();
    if (answers_.send(now, request, *object, "fwd=stale;fwd-status=304")) {
      to_client_.end();
      to_server_.end();
    }
    // A server that closes after its response is noticed by its end.
    return Taken::yes;
  }
  // The request as the client made it gets a response, unless others have followed it, whose responses come
  // first now.
  if (awaited_.size() > 1 || to_server_.has_stepped_aside() || to_server_.has_ended() || ended_)
    return Taken::failed;
  exchange.asked_about.reset();
  to_server_.say(std::exchange(exchange.head, {}));
  return Taken::yes;
}

// The response is complete.
void Responses::finish() {
  const Awaited& exchange = awaited_.first();
  if (!body_.has_trailers()) storing_.complete(exchange.key, exchange.erasures, uses_disk_);
  storing_.drop();
  in_response_ = false;
  awaited_.pop_first();
}

// A client that waits for the response to a question of this half cannot get it any more.
Responses::Outcome Responses::not_understood() {
  if (awaited_.has_question(in_response_ ? 1 : 0)) return Outcome::failed;
  pass();
  return Outcome::goes_on;
}

void Responses::pass() {
  passes_ = true;
  waits_since_.reset();
  storing_.drop();
  awaited_.clear();
  pass_held();
}

void Responses::pass_held() {
  if (!held_.empty()) to_client_.pass(Slice::copy_of(held_));
  held_ = {};
}

void Responses::server_ended() {
  ended_ = true;
  if (!waits_since_) end_client();
}

void Responses::end_client() {
  storing_.drop();  // what has not ended by itself is not complete
  pass_held();
  to_client_.end();
}

}  // namespace longhaul::http
