// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/near.h"

#include <algorithm>
#include <utility>

#include "proxy/modules/http/reasons.h"

namespace longhaul::http {
namespace {

Slice slice_of(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

}  // namespace

Near::Near(const modules::Ends& ends, std::shared_ptr<Site> site, std::string_view verified_name)
    : site_(std::move(site)),
      place_(ends, verified_name),
      receiving_(site_, place_, ends.client),
      answers_(site_, place_, receiving_, to_client_),
      responses_(site_, place_, answers_, to_client_, to_server_) {}

void Near::on_surroundings(TimePoint now, const modules::Surroundings& told) {
  is_on_ = told.features.modules.value("http") != 0;
  receiving_.use(is_on_ && told.features.modules.value("http.prefetch") != 0);
  responses_.use(is_on_);
  const bool uses_disk = told.features.dedup_memory && told.features.dedup_disk;
  receiving_.use_disk(uses_disk);
  answers_.use_disk(uses_disk);
  responses_.use_disk(uses_disk);
  receiving_.count_wasted(now);
  if (!is_on_) requests_pass({});
  review();
}

const modules::Counters& Near::counters() const {
  shown_ = answers_.counters();
  return shown_ += receiving_.counters();
}

std::optional<modules::Output> Near::poll_output() {
  if (out_.empty()) return std::nullopt;
  modules::Output first = std::move(out_.front());
  out_.pop_front();
  return first;
}

// ---------------------------------------------------------------------------------------------------- requests

void Near::from_lan(TimePoint now, Slice bytes) {
  if (aborted_ || to_server_.has_ended()) return;
  if (to_server_.has_stepped_aside()) return to_server_.say(std::move(bytes));
  append(request_, bytes.bytes());
  to_client_.begin_call();
  read_requests(now);
  review();
}

void Near::from_lan_seen_late(TimePoint now, Slice bytes) {
  if (aborted_ || to_server_.has_ended() || to_server_.has_stepped_aside()) return;
  append(request_, bytes.bytes());
  to_server_.skip(bytes.size());
  read_requests(now);
  review();
}

void Near::read_requests(TimePoint now) {
  std::size_t at = 0;  // of request_
  while (at < request_.size() && !to_server_.has_stepped_aside() && !to_server_.has_ended() && !aborted_) {
    const Bytes rest = Bytes(request_).subspan(at);
    if (!request_body_.done()) {
      const auto size = request_body_.take(rest, nullptr);
      if (!size) {
        request_.erase(request_.begin(), request_.begin() + static_cast<std::ptrdiff_t>(at));
        return requests_pass(reasons::http_not_understood);
      }
      if (shares_content_)
        to_server_.pass_content(rest.first(*size));
      else
        to_server_.pass(rest.first(*size));
      at += *size;
      continue;
    }
    const std::size_t size = head_size(rest);
    const bool too_long = (size == 0 ? rest.size() : size) > kMostHeadBytes;
    if (size == 0 && !too_long) break;
    if (!too_long && waits(now, rest.first(size))) break;
    if (too_long || !take_request(now, rest.first(size))) {
      request_.erase(request_.begin(), request_.begin() + static_cast<std::ptrdiff_t>(at));
      return requests_pass(reason_ == modules::Reason() ? modules::Reason(reasons::http_not_understood) : reason_);
    }
    at += size;
  }
  if (to_server_.has_stepped_aside() || aborted_) return;
  request_.erase(request_.begin(), request_.begin() + static_cast<std::ptrdiff_t>(at));
}

// False: it and all that follows passes without the cache.
bool Near::take_request(TimePoint now, Bytes head) {
  auto request = read_request(head);
  const auto framing = request ? framing_of(*request) : std::nullopt;
  if (!framing || responses_.awaits_most()) return false;
  if (request->method == "CONNECT" || request->fields.has("upgrade") || request->method == "PRI") {
    reason_ = reasons::http_upgraded;
    return false;
  }
  // Some servers do not read the body of a request that needs none, or of one that they refuse: to them its bytes are the
  // next request, and their answers no longer fit the requests that this half has seen.
  const bool has_body = framing->kind != Framing::Kind::none;
  if (has_body && (request->method == "GET" || request->method == "HEAD")) return false;
  std::string key = place_.key_of(*request);
  LocalAnswers::Outcome local = answers_.take(now, key, *request, allowed_now());
  if (local.is_answered) {
    if (local.closes) {
      to_client_.end();
      to_server_.end();
    }
    return true;
  }
  request_body_ = Body(*framing);
  // With chunks there may be fields between and after them.
  shares_content_ = framing->kind == Framing::Kind::length && framing->length >= ToServer::kLeastContent;
  forward({.request = *std::move(request),
           .key = std::move(key),
           .asked_about = std::move(local.ask_about),
           .head = {},
           .has_body = has_body,
           .erasures = site_->store.erasures()},
          head);
  return true;
}

// Responses keep the order of the requests.
bool Near::may_answer_now() const { return responses_.is_idle() && !to_client_.has_answered_enough(); }

LocalAnswers::Allowed Near::allowed_now() const {
  using enum LocalAnswers::Allowed;
  if (to_server_.is_skipping()) return nothing;
  return may_answer_now() ? answer : question;
}

bool Near::waits(TimePoint now, Bytes head) {
  look_at_.reset();
  if (!is_on_ || lan_ended_ || to_server_.is_skipping() || !may_answer_now() ||
      request_.size() > kMostHeadBytes)
    return false;
  if (!answers_.may_have_to_wait()) return false;
  const auto request = read_request(head);
  if (!request || !answers_.must_wait(now, *request)) return false;
  look_at_ = now + Receiving::kLook;
  return true;
}

void Near::on_timeout(TimePoint now) {
  if (!look_at_ || now < *look_at_) return;
  to_client_.begin_call();
  read_requests(now);
  review();
}

void Near::forward(Awaited request, Bytes head) {
  if (request.asked_about) {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size() - 2);
    to_server_.say(slice_of(std::string(text) + question_about(*request.asked_about) + "\r\n"));
    request.head = Slice::copy_of(head);
  } else {
    to_server_.pass(head);
  }
  responses_.await(std::move(request));
}

void Near::requests_pass(modules::Reason reason) {
  if (to_server_.has_stepped_aside() || to_server_.has_ended() || lan_ended_ || aborted_) return;
  look_at_.reset();
  reason_ = reason;
  to_server_.step_aside(reason, request_);
  request_ = {};
}

void Near::lan_ended(TimePoint now, modules::Ending ending) {
  lan_ended_ = true;
  if (ending == modules::Ending::reset) return abort();
  if (look_at_) read_requests(now);
  if (!to_server_.has_ended()) to_server_.pass(request_);
  request_ = {};
  to_server_.end();
}

// ------------------------------------------------------------------------------------------- responses

void Near::from_twin(TimePoint now, Slice message) {
  if (!receiving_.from_twin(now, message.bytes())) return abort();
  look_again(now);
}

void Near::from_stream(TimePoint now, Slice bytes) {
  bytes = receiving_.from_stream(now, std::move(bytes));
  look_again(now);
  if (aborted_ || to_client_.has_ended() || bytes.empty()) return;
  after(responses_.from_server(now, std::move(bytes)));
}

// An object may have arrived.
void Near::look_again(TimePoint now) {
  if (look_at_) on_timeout(std::max(now, *look_at_));
}

void Near::on_room(TimePoint, const modules::Room& room) {
  if (room.lan && !aborted_) after(responses_.on_room());
}

void Near::stream_ended(TimePoint, modules::Ending ending) {
  receiving_.end();
  if (ending == modules::Ending::reset) return abort();
  responses_.server_ended();
}

// -------------------------------------------------------------------------------------------------------- ends

void Near::after(Responses::Outcome outcome) { outcome == Responses::Outcome::failed ? abort() : review(); }

void Near::twin_stepped_aside(TimePoint) {
  twin_aside_ = true;
  requests_pass({});
  review();
}

void Near::give_up_memory(TimePoint) {
  responses_.give_up_memory();
  requests_pass(modules::reasons::memory_limit);
  review();
}

// If one direction passes, the other does as soon as it can.
void Near::review() {
  if (aborted_) return;
  if (to_server_.has_ended()) request_.clear();
  if (to_server_.has_stepped_aside() && !responses_.awaits_any()) responses_.pass();
  if (!responses_.passes()) return;
  requests_pass(reasons::http_not_understood);
  if (twin_aside_) to_client_.step_aside();
}

void Near::abort() {
  responses_.give_up_memory();
  if (!std::exchange(aborted_, true)) out_.push_back(modules::Abort{});
}

}  // namespace longhaul::http
