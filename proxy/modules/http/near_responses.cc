// SPDX-License-Identifier: Apache-2.0
// Near: the responses of the server.
#include <algorithm>

#include "proxy/modules/http/near.h"
#include "proxy/modules/http/reasons.h"

namespace longhaul::http {

void Near::from_twin(TimePoint now, Slice message) {
  if (!receiving_.from_twin(now, message.bytes())) return abort();
  if (look_at_) on_timeout(std::max(now, *look_at_));
}

void Near::from_stream(TimePoint now, Slice bytes) {
  bytes = receiving_.from_stream(now, std::move(bytes));
  if (look_at_) on_timeout(std::max(now, *look_at_));
  if (aborted_ || to_client_.has_ended() || bytes.empty()) return;
  if (responses_pass_) return to_client_.pass(std::move(bytes));
  // The body of a response, which is most of what comes, is not copied.
  if (in_response_ && response_.empty() && !response_body_.done()) {
    const auto size = response_body_.take(bytes.bytes(), storing_.content());
    if (!size) {
      responses_pass();
      return to_client_.pass(std::move(bytes));
    }
    to_client_.pass(bytes.sub(0, *size));
    if (response_body_.done()) response_done(now);
    bytes = bytes.from(*size);
  }
  append(response_, bytes.bytes());
  if (!responses_wait_) read_on(now);
}

// As of when they came: waiting makes nothing fresher.
void Near::on_room(TimePoint, const modules::Room& room) {
  if (responses_wait_ && room.lan && !aborted_) read_on(*responses_wait_);
}

void Near::read_on(TimePoint now) {
  to_client_.begin_call();
  read_responses(now);
  storing_.count();
  review();
}

void Near::read_responses(TimePoint now) {
  responses_wait_.reset();
  std::size_t at = 0;
  const auto keep = [&] { response_.erase(response_.begin(), response_.begin() + static_cast<std::ptrdiff_t>(at)); };
  while (at < response_.size() && !responses_pass_ && !aborted_) {
    const Bytes rest = Bytes(response_).subspan(at);
    if (in_response_) {
      const auto size = response_body_.take(rest, storing_.content());
      if (!size) {
        keep();
        return responses_pass();
      }
      to_client_.pass(Slice::copy_of(rest.first(*size)));
      at += *size;
      if (response_body_.done()) response_done(now);
      continue;
    }
    // Until the client has read (on_room()).
    if (to_client_.has_answered_enough() && !awaited_.empty()) {
      responses_wait_ = now;
      break;
    }
    const std::size_t size = head_size(rest);
    const bool too_long = (size == 0 ? rest.size() : size) > kMostHeadBytes;
    if (size == 0 && !too_long) break;
    if (too_long || !take_response(now, rest.first(size))) {
      keep();
      return responses_pass();
    }
    at += size;
  }
  if (!responses_pass_ && !aborted_) keep();
}

// False: it and all that follows passes as it is.
bool Near::take_response(TimePoint now, Bytes head) {
  const auto response = read_response(head);
  if (!response || awaited_.empty()) return false;
  Awaited& exchange = awaited_.first();
  const auto framing = framing_of(*response, exchange.request.method);
  if (!framing || response->status == 101) return false;
  if (response->status < 200) {
    to_client_.pass(Slice::copy_of(head));
    return true;
  }
  place_.invalidate(site_->store, exchange.request, *response);

  if (response->status == 304 && exchange.asked_about) {
    const Object object = answers_.take_not_modified(now, exchange, *response, !had_body_);
    if (!object) {
      // The request as the client made it gets an answer, unless others have followed it, whose answers come
      // first now.
      if (awaited_.size() > 1 || requests_pass_ || to_server_.has_ended() || stream_ended_) {
        abort();
        return true;
      }
      exchange.asked_about.reset();
      to_server_.say(std::exchange(exchange.head, {}));
      return true;
    }
    const RequestHead request = exchange.request;
    finish_exchange();
    if (answers_.send(now, request, *object, "fwd=stale;fwd-status=304")) end_after_answer();
    // A server that closes after its answer is heard as its end.
    return true;
  }
  to_client_.pass(Slice::copy_of(head));
  in_response_ = true;
  response_body_ = Body(*framing);
  storing_.drop();
  const bool has_end = framing->kind != Framing::Kind::until_close;
  const Seconds wall = site_->wall();
  const bool fits = has_end && framing->length <= site_->store.most_object_bytes();
  if (is_on_ && !had_body_ && fits && may_store(exchange.request, *response, wall))
    storing_.begin(to_store(exchange.request, *response, now, wall));
  if (response_body_.done()) response_done(now);
  return true;
}

void Near::response_done(TimePoint) {
  const Awaited& exchange = awaited_.first();
  if (!response_body_.has_trailers()) storing_.complete(exchange.key, exchange.erasures, uses_disk_);
  storing_.drop();
  finish_exchange();
}

void Near::finish_exchange() {
  in_response_ = false;
  awaited_.pop_first();
}

// Nothing can be told apart any more; a client that waits for the answer to a question of ours cannot get it.
void Near::responses_pass() {
  if (responses_pass_) return;
  responses_wait_.reset();
  const std::size_t begun = in_response_ ? 1 : 0;
  if (awaited_.has_question(begun)) return abort();
  responses_pass_ = true;
  storing_.drop();
  awaited_.clear();
  if (!response_.empty()) to_client_.pass(Slice::copy_of(response_));
  response_ = {};
  requests_pass(reasons::http_not_understood);
}

void Near::stream_ended(TimePoint, modules::Ending ending) {
  stream_ended_ = true;
  receiving_.end();
  if (ending == modules::Ending::reset) return abort();
  if (!responses_wait_) responses_ended();
}

void Near::responses_ended() {
  storing_.drop();  // what has not ended by itself is not complete
  if (!response_.empty()) to_client_.pass(Slice::copy_of(response_));
  response_ = {};
  to_client_.end();
}

}  // namespace longhaul::http
