// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/near.h"

#include <algorithm>

#include "proxy/modules/http/reasons.h"

namespace longhaul::http {
namespace {

constexpr std::string_view kFresh = "hit", kValidated = "fwd=stale;fwd-status=304";

Slice slice_of(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

std::size_t memory_of(const RequestHead& request) {
  std::size_t bytes = sizeof request + request.target.size();
  for (const Field& field : request.fields.all()) bytes += sizeof field + field.name.size() + field.value.size();
  return bytes;
}

}  // namespace

Near::Near(const modules::Ends& ends, std::shared_ptr<Site> site, std::string_view verified_name)
    : site_(std::move(site)), place_(ends, verified_name) {}

void Near::on_surroundings(TimePoint, const modules::Surroundings& told) {
  is_on_ = told.features.modules.value("http") != 0;
  if (!is_on_) requests_pass({});
  review();
}

std::optional<modules::Output> Near::poll_output() {
  if (out_.empty()) return std::nullopt;
  modules::Output first = std::move(out_.front());
  out_.pop_front();
  return first;
}

// ---------------------------------------------------------------------------------------------------- requests

void Near::from_lan(TimePoint now, Slice bytes) {
  if (aborted_ || ended_stream_) return;
  if (requests_pass_) return out_.push_back(modules::ToStream{std::move(bytes)});
  append(request_, bytes.bytes());
  answered_bytes_ = 0;
  read_requests(now);
  review();
}

void Near::from_lan_seen_late(TimePoint now, Slice bytes) {
  if (aborted_ || ended_stream_ || requests_pass_) return;
  append(request_, bytes.bytes());
  at_server_ += bytes.size();
  read_requests(now);
  review();
}

void Near::to_server(Bytes bytes) {
  const std::size_t has = std::min(at_server_, bytes.size());
  at_server_ -= has;
  if (has < bytes.size()) out_.push_back(modules::ToStream{Slice::copy_of(bytes.subspan(has))});
}

void Near::read_requests(TimePoint now) {
  std::size_t at = 0;  // of request_
  while (at < request_.size() && !requests_pass_ && !aborted_ && !ended_stream_) {
    const Bytes rest = Bytes(request_).subspan(at);
    if (!request_body_.done()) {
      const auto size = request_body_.take(rest, nullptr);
      if (!size) {
        request_.erase(request_.begin(), request_.begin() + static_cast<std::ptrdiff_t>(at));
        return requests_pass(reasons::http_not_understood);
      }
      to_server(rest.first(*size));
      at += *size;
      continue;
    }
    const std::size_t size = head_size(rest);
    const bool too_long = (size == 0 ? rest.size() : size) > kMostHeadBytes;
    if (size == 0 && !too_long) break;
    if (too_long || !take_request(now, rest.first(size))) {
      request_.erase(request_.begin(), request_.begin() + static_cast<std::ptrdiff_t>(at));
      return requests_pass(reason_ == modules::Reason() ? modules::Reason(reasons::http_not_understood) : reason_);
    }
    at += size;
  }
  if (requests_pass_ || aborted_) return;
  request_.erase(request_.begin(), request_.begin() + static_cast<std::ptrdiff_t>(std::min(at, request_.size())));
}

// False: it and all that follows passes without the cache.
bool Near::take_request(TimePoint now, Bytes head) {
  auto request = read_request(head);
  const auto framing = request ? framing_of(*request) : std::nullopt;
  if (!framing || exchanges_.size() == kMostExchanges) return false;
  if (request->method == "CONNECT" || request->fields.has("upgrade") || request->method == "PRI") {
    reason_ = reasons::http_upgraded;
    return false;
  }
  // Some servers do not read the body of a request that needs none, or of one that they refuse: to them its bytes are the
  // next request, and their answers no longer fit the requests that this half has seen.
  const bool has_body = framing->kind != Framing::Kind::none;
  if (has_body && (request->method == "GET" || request->method == "HEAD")) return false;
  had_body_ |= has_body;
  std::string key = place_.key_of(*request);
  Object ask_about;
  if (may_answer(*request) && at_server_ == 0) {
    const Object object = site_->store.find(key, *request);
    // Responses keep the order of the requests.
    if (object && exchanges_.empty() && !in_response_ && !responses_pass_ && !stream_ended_ &&
        answered_bytes_ < kMostAnsweredBytes && answer(now, *request, object))
      return true;
    if (object && object->can_be_asked_about() && may_ask(*request)) ask_about = object;
  }
  request_body_ = Body(*framing);
  forward(*std::move(request), std::move(key), head, std::move(ask_about));
  return true;
}

bool Near::answer(TimePoint now, const RequestHead& request, const Object& object) {
  if (!is_fresh_for(*object, request, now)) return false;
  if (request.fields.has("range") && !is_at_client(*object, request) && !part_of(*object, request)) return false;
  ++counters_.cache_hits;
  ++counters_.round_trips_saved;
  send(now, request, object, kFresh);
  return true;
}

void Near::send(TimePoint now, const RequestHead& request, const Object& object, std::string_view note) {
  const bool closes_after = closes(request.fields, request.minor), not_modified = is_at_client(*object, request);
  const auto part = not_modified ? std::nullopt : part_of(*object, request);
  to_lan(answer_head(*object, now, {.not_modified = not_modified, .part = part, .closes = closes_after, .note = note}));
  if (!not_modified) send_content(*object, part.value_or(Part{0, object->content_bytes}));
  answered_bytes_ += 1024;
  if (!closes_after) return;
  end_lan();
  request_.clear();
  if (!lan_ended_ && !std::exchange(ended_stream_, true)) out_.push_back(modules::EndStream{});
}

void Near::send_content(const Stored& object, Part part) {
  counters_.cache_bytes += part.size;
  answered_bytes_ += part.size;
  for (const Slice& piece : object.content) {
    if (part.size == 0) return;
    const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(part.first, piece.size()));
    const auto sent = static_cast<std::size_t>(std::min<std::uint64_t>(part.size, piece.size() - skipped));
    to_lan(piece.sub(skipped, sent));
    part.first -= skipped;
    part.size -= sent;
  }
}

void Near::forward(RequestHead request, std::string key, Bytes head, Object ask_about) {
  if (ask_about) {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size() - 2);
    out_.push_back(modules::ToStream{slice_of(std::string(text) + question_about(*ask_about) + "\r\n")});
  } else {
    to_server(head);
  }
  Slice own_head = ask_about ? Slice::copy_of(head) : Slice();
  const std::size_t bytes = sizeof(Exchange) + memory_of(request) + key.size() + own_head.size();
  exchanges_bytes_ += bytes;
  exchanges_.push_back({.request = std::move(request),
                        .key = std::move(key),
                        .asked_about = std::move(ask_about),
                        .head = std::move(own_head),
                        .erasures = site_->store.erasures(),
                        .bytes = bytes});
}

void Near::requests_pass(modules::Reason reason) {
  if (requests_pass_ || lan_ended_ || ended_stream_ || aborted_) return;
  requests_pass_ = true;
  reason_ = reason;
  out_.push_back(modules::StepAside{modules::Way::to_stream, reason});
  to_server(request_);
  request_ = {};
}

void Near::lan_ended(TimePoint, modules::Ending ending) {
  lan_ended_ = true;
  if (ending == modules::Ending::reset) return abort();
  if (!ended_stream_) to_server(request_);
  request_ = {};
  if (!std::exchange(ended_stream_, true)) out_.push_back(modules::EndStream{});
}

// --------------------------------------------------------------------------------------------------- responses

void Near::from_stream(TimePoint now, Slice bytes) {
  if (aborted_ || ended_lan_) return;
  if (responses_pass_) return to_lan(std::move(bytes));
  // The body of a response, which is most of what comes, is not copied.
  if (in_response_ && response_.empty() && !response_body_.done()) {
    const auto size = response_body_.take(bytes.bytes(), storing_ ? &content_ : nullptr);
    if (!size) {
      responses_pass();
      return to_lan(std::move(bytes));
    }
    to_lan(bytes.sub(0, *size));
    if (response_body_.done()) response_done(now);
    bytes = bytes.from(*size);
  }
  append(response_, bytes.bytes());
  read_responses(now);
  if (storing_ && content_.size() > site_->store.most_object_bytes()) drop_pending();
  if (storing_) {
    site_->pending_bytes += content_.size() - pending_bytes_;
    pending_bytes_ = content_.size();
    if (site_->pending_bytes > 2 * site_->store.most_object_bytes()) drop_pending();
  }
  review();
}

void Near::read_responses(TimePoint now) {
  std::size_t at = 0;
  const auto keep = [&] { response_.erase(response_.begin(), response_.begin() + static_cast<std::ptrdiff_t>(at)); };
  while (at < response_.size() && !responses_pass_ && !aborted_) {
    const Bytes rest = Bytes(response_).subspan(at);
    if (in_response_) {
      const auto size = response_body_.take(rest, storing_ ? &content_ : nullptr);
      if (!size) {
        keep();
        return responses_pass();
      }
      to_lan(Slice::copy_of(rest.first(*size)));
      at += *size;
      if (response_body_.done()) response_done(now);
      continue;
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
  if (!response || exchanges_.empty()) return false;
  Exchange& exchange = exchanges_.front();
  const auto framing = framing_of(*response, exchange.request.method);
  if (!framing || response->status == 101) return false;
  if (response->status < 200) {
    to_lan(Slice::copy_of(head));
    return true;
  }
  place_.invalidate(site_->store, exchange.request, *response);

  if (response->status == 304 && exchange.asked_about) {
    auto fresh = validated(*exchange.asked_about, *response, now, site_->wall());
    if (!fresh) {
      // It speaks of other content than was asked about. The request as the client made it gets an answer, unless others
      // have followed it, whose answers come first now.
      site_->store.erase(exchange.key);
      if (exchanges_.size() > 1 || requests_pass_ || ended_stream_ || stream_ended_) {
        abort();
        return true;
      }
      exchange.asked_about.reset();
      out_.push_back(modules::ToStream{std::exchange(exchange.head, {})});
      return true;
    }
    const auto object = std::make_shared<const Stored>(std::move(*fresh));
    ++counters_.cache_validations;
    const RequestHead request = exchange.request;
    const bool is_current = !had_body_ && !site_->store.was_erased(exchange.key, exchange.erasures);
    if (is_current && may_store(request, {.status = 200, .phrase = {}, .fields = object->fields}, site_->wall()))
      site_->store.put(exchange.key, *object);
    finish_exchange();
    send(now, request, object, kValidated);
    // A server that closes after its answer is heard as its end.
    return true;
  }
  to_lan(Slice::copy_of(head));
  in_response_ = true;
  response_body_ = Body(*framing);
  drop_pending();
  const bool has_end = framing->kind != Framing::Kind::until_close;
  const Seconds wall = site_->wall();
  const bool fits = has_end && framing->length <= site_->store.most_object_bytes();
  if (is_on_ && !had_body_ && fits && may_store(exchange.request, *response, wall))
    storing_ = to_store(exchange.request, *response, now, wall);
  if (response_body_.done()) response_done(now);
  return true;
}

void Near::response_done(TimePoint) {
  const Exchange& exchange = exchanges_.front();
  if (storing_ && !response_body_.has_trailers() && !site_->store.was_erased(exchange.key, exchange.erasures)) {
    storing_->content_bytes = content_.size();
    storing_->content = content_.take();
    site_->store.put(exchange.key, *std::exchange(storing_, std::nullopt));
  }
  drop_pending();
  finish_exchange();
}

void Near::finish_exchange() {
  in_response_ = false;
  exchanges_bytes_ -= exchanges_.front().bytes;
  exchanges_.pop_front();
}

// Nothing can be told apart any more; a client that waits for the answer to a question of ours cannot get it.
void Near::responses_pass() {
  if (responses_pass_) return;
  const std::size_t begun = in_response_ ? 1 : 0;
  const auto first = exchanges_.begin() + static_cast<std::ptrdiff_t>(std::min(begun, exchanges_.size()));
  const bool owes = std::any_of(first, exchanges_.end(), [](const Exchange& each) { return each.asked_about != nullptr; });
  if (owes) return abort();
  responses_pass_ = true;
  drop_pending();
  exchanges_.clear();
  exchanges_bytes_ = 0;
  if (!response_.empty()) to_lan(Slice::copy_of(response_));
  response_ = {};
  requests_pass(reasons::http_not_understood);
}

void Near::drop_pending() {
  site_->pending_bytes -= pending_bytes_;
  pending_bytes_ = 0;
  storing_.reset();
  content_ = {};
}

void Near::stream_ended(TimePoint, modules::Ending ending) {
  stream_ended_ = true;
  drop_pending();  // what has not ended by itself is not complete
  if (ending == modules::Ending::reset) return abort();
  if (!response_.empty()) to_lan(Slice::copy_of(response_));
  response_ = {};
  end_lan();
}

void Near::twin_stepped_aside(TimePoint) {
  twin_aside_ = true;
  requests_pass({});
  review();
}

void Near::give_up_memory(TimePoint) {
  drop_pending();
  requests_pass(modules::reasons::memory_limit);
  review();
}

void Near::review() {
  if (aborted_) return;
  if (requests_pass_ && !responses_pass_ && exchanges_.empty() && !in_response_) responses_pass();
  if (!twin_aside_ || !responses_pass_ || ended_lan_ || std::exchange(stepped_aside_to_lan_, true)) return;
  out_.push_back(modules::StepAside{modules::Way::to_lan});
}

void Near::to_lan(Slice bytes) {
  if (!ended_lan_ && !bytes.empty()) out_.push_back(modules::ToLan{std::move(bytes)});
}

void Near::end_lan() {
  if (!std::exchange(ended_lan_, true)) out_.push_back(modules::EndLan{});
}

void Near::abort() {
  drop_pending();
  if (!std::exchange(aborted_, true)) out_.push_back(modules::Abort{});
}

}  // namespace longhaul::http
