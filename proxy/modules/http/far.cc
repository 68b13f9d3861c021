// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/far.h"

#include <algorithm>

#include "proxy/modules/http/prefetch/asked.h"

namespace longhaul::http {
// Without prefetch nothing needs to be parsed. Switched on later, it applies to new connections.
void Far::on_surroundings(TimePoint, const modules::Surroundings& told) {
  fetching_.on_surroundings(told);
  pushing_.dropped(fetching_);
  if (!fetching_.is_on() && !ours_ && !is_over_) stop_reading();
}

std::optional<modules::Output> Far::poll_output() {
  if (out_.empty()) return std::nullopt;
  modules::Output first = std::move(out_.front());
  out_.pop_front();
  return first;
}

void Far::to_lan(Slice bytes) {
  if (!bytes.empty()) out_.push_back(modules::ToLan{std::move(bytes)});
}

void Far::to_stream(Slice bytes) {
  if (!bytes.empty()) out_.push_back(modules::ToStream{std::move(bytes)});
}

// ---------------------------------------------------------------------------------------------------- requests

void Far::from_stream(TimePoint now, Slice bytes) {
  if (is_blind_) return to_lan(std::move(bytes));
  if (!ours_) {
    read_requests(std::move(bytes));
    return fetch(now);
  }
  append(waiting_, bytes.bytes());
  if (!waits_since_) waits_since_ = now;
  if (waiting_.size() > kMostWaitingBytes) abandon();
}

void Far::read_requests(Slice bytes) {
  // Content of uploads is passed on without a copy.
  if (request_.empty() && !request_body_.done()) {
    const auto size = request_body_.take(bytes.bytes(), nullptr);
    if (!size) {
      stop_reading();
      return to_lan(std::move(bytes));
    }
    to_lan(bytes.sub(0, *size));
    bytes = bytes.from(*size);
  }
  append(request_, bytes.bytes());
  std::size_t at = 0;
  const auto keep = [&] { request_.erase(request_.begin(), request_.begin() + static_cast<std::ptrdiff_t>(at)); };
  while (at < request_.size()) {
    const Bytes rest = Bytes(request_).subspan(at);
    if (!request_body_.done()) {
      const auto size = request_body_.take(rest, nullptr);
      if (!size) break;
      to_lan(Slice::copy_of(rest.first(*size)));
      at += *size;
      continue;
    }
    const std::size_t size = head_size(rest);
    if (size == 0 && rest.size() <= kMostHeadBytes) return keep();
    if (size == 0 || size > kMostHeadBytes || !take_request(rest.first(size))) break;
    to_lan(Slice::copy_of(rest.first(size)));
    at += size;
  }
  const bool is_read = at == request_.size();
  keep();
  if (!is_read) stop_reading();
}

// False: the following bytes cannot be parsed reliably.
bool Far::take_request(Bytes head) {
  auto request = read_request(head);
  const auto framing = request ? framing_of(*request) : std::nullopt;
  if (!framing || owed_.size() == kMostOwed || request->method == "CONNECT" || request->fields.has("upgrade")) return false;
  const bool has_body = framing->kind != Framing::Kind::none;
  if (has_body && (request->method == "GET" || request->method == "HEAD")) return false;
  // A server that does not read the body would parse it as requests: a response could then be paired with the wrong request.
  if (has_body) fetching_.give_up();
  request_body_ = Body(*framing);
  owed_bytes_ += memory_bytes(*request);
  owed_.push_back(*std::move(request));
  return true;
}

// -------------------------------------------------------------------------------------------------- responses

void Far::from_lan(TimePoint now, Slice bytes) {
  if (is_over_) return;
  if (is_blind_) return to_stream(std::move(bytes));
  if (in_response_ && response_.empty()) {
    const auto size = take_body(now, bytes);
    if (!size) return;
    bytes = bytes.from(*size);
    if (is_blind_) return to_stream(std::move(bytes));
  }
  append(response_, bytes.bytes());
  read_responses(now);
  fetch(now);
}

// How many of the bytes belong to the body. Nothing: the connection to the server has been abandoned.
std::optional<std::size_t> Far::take_body(TimePoint now, const Slice& bytes) {
  const bool is_looked_at = ours_ || document_, was_redialled = redialled_;
  const auto size = response_body_.take(bytes.bytes(), is_looked_at ? &content_ : nullptr);
  if (size) {
    body_passes(now, bytes.sub(0, *size));
    if (redialled_ == was_redialled && response_body_.done()) response_done(now);
  } else if (ours_) {
    abandon();
  } else {
    stop_reading();
  }
  if (redialled_ != was_redialled) return std::nullopt;
  return size.value_or(0);
}

void Far::body_passes(TimePoint now, Slice raw) {
  for (const Slice& piece : content_.take()) {
    if (document_)
      for (const Announced& found : fetching_.read(now, *document_, piece.bytes())) pushing_.tell(found);
    if (ours_ && ours_->is_used) pushing_.piece(ours_->object.number, piece.bytes(), false);
  }
  if (!ours_) return to_stream(std::move(raw));
  ours_->bytes += raw.size();
  fetching_.count(raw.size());
  if (ours_->bytes > PushedStore::kMostObjectBytes) abandon();
}

void Far::read_responses(TimePoint now) {
  while (!response_.empty() && !is_blind_ && !is_over_) {
    if (in_response_) {
      const Slice rest = Slice::copy_of(std::exchange(response_, {}));
      const auto size = take_body(now, rest);
      if (!size) return;
      if (is_blind_) return to_stream(rest.from(*size));
      append(response_, rest.from(*size).bytes());
      continue;
    }
    const std::size_t size = head_size(response_);
    const bool too_long = (size == 0 ? response_.size() : size) > kMostHeadBytes;
    if (size == 0 && !too_long) return;
    const Buffer head(response_.begin(), response_.begin() + static_cast<std::ptrdiff_t>(size));
    const bool is_read = !too_long && (ours_ ? take_our_head(head) : take_response(now, head));
    if (!is_read) return ours_ ? abandon() : stop_reading();
    response_.erase(response_.begin(), response_.begin() + static_cast<std::ptrdiff_t>(size));
    if (in_response_ && response_body_.done()) response_done(now);
  }
}

bool Far::take_response(TimePoint now, Bytes head) {
  const auto response = read_response(head);
  if (!response || owed_.empty()) return false;
  const auto framing = framing_of(*response, owed_.front().method);
  if (!framing || response->status == 101) return false;
  to_stream(Slice::copy_of(head));
  if (response->status < 200) return true;
  in_response_ = true;
  response_body_ = Body(*framing);
  // A response delimited by the end of the connection leaves no connection to prefetch on.
  if (framing->kind != Framing::Kind::until_close) document_ = fetching_.begins(now, owed_.front(), *response);
  pushing_.dropped(fetching_);
  return true;
}

bool Far::take_our_head(Bytes head) {
  auto response = read_response(head);
  const auto framing = response ? framing_of(*response, "GET") : std::nullopt;
  const bool fits = framing && framing->kind != Framing::Kind::until_close && response->status != 101 &&
                    framing->length <= PushedStore::kMostObjectBytes;
  if (!fits) return false;
  if (response->status < 200) return true;
  in_response_ = true;
  response_body_ = Body(*framing);
  if (authenticates_connection(response->fields)) fetching_.give_up();
  ours_->closes = closes(response->fields, response->minor);
  ours_->is_used = response->status == 200 && response->minor == 1 && varies_with(response->fields).has_value();
  ours_->response = *std::move(response);
  if (ours_->is_used) {
    document_ = fetching_.begins(ours_->object, ours_->response);
    pushing_.piece(ours_->object.number, head, false);
  } else {
    pushing_.dropped(ours_->object.number);
  }
  return true;
}

void Far::response_done(TimePoint now) {
  in_response_ = false;
  document_.reset();
  if (!ours_) {
    owed_bytes_ -= memory_bytes(owed_.front());
    owed_.pop_front();
    return;
  }
  if (ours_->is_used && response_body_.has_trailers())
    pushing_.dropped(ours_->object.number);
  else if (ours_->is_used)
    pushing_.piece(ours_->object.number, {}, true);
  fetching_.fetched(now, ours_->object, ours_->response);
  if (ours_->closes) {
    ours_->is_used = false;
    return abandon();
  }
  ours_.reset();
  after_ours();
}

// ---------------------------------------------------------------------------------------------------- prefetch

// Only while no request of the client is pending or in transit.
void Far::fetch(TimePoint now) {
  const bool is_idle = owed_.empty() && !in_response_ && request_.empty() && request_body_.done() && response_.empty();
  const bool goes_on = !is_blind_ && !is_over_ && !redialled_ && !stream_ended_ && !lan_ended_ && !twin_aside_ && !steps_aside_;
  if (ours_ || !is_idle || !goes_on) return;
  auto next = fetching_.next();
  pushing_.dropped(fetching_);
  if (!next) return;
  ++counters_.injected;
  const std::string head = head_text(next->asked);
  to_lan(Slice::copy_of(std::as_bytes(std::span(head))));
  ours_.emplace(Ours{.object = *std::move(next), .since = now, .response = {}});
}

// The connection to the server cannot be used until the object is complete, and it is late, too large or has no determined
// end. The client's requests get a new connection; prefetch does not continue there, so this happens once.
void Far::abandon() {
  if (ours_->is_used) pushing_.dropped(ours_->object.number);
  ours_.reset();
  document_.reset();
  fetching_.give_up();
  fetching_.drop_all();
  pushing_.dropped(fetching_);
  in_response_ = false;
  response_ = {};
  response_body_ = {};
  content_ = {};
  redialled_ = true;
  out_.push_back(modules::Redial{});
  after_ours();
}

void Far::after_ours() {
  waits_since_.reset();
  const Buffer waiting = std::exchange(waiting_, {});
  if (steps_aside_) {
    step_aside(*steps_aside_);
    to_lan(Slice::copy_of(waiting));
  } else if (!waiting.empty()) {
    read_requests(Slice::copy_of(waiting));
  }
  if (stream_ended_) {
    to_lan(Slice::copy_of(std::exchange(request_, {})));
    out_.push_back(modules::EndLan{});
  } else if (twin_aside_) {
    out_.push_back(modules::StepAside{modules::Way::to_lan});
  }
}

void Far::on_timeout(TimePoint now) {
  if (const auto at = next_timeout(); at && now >= *at) abandon();
}

std::optional<modules::TimePoint> Far::next_timeout() const {
  if (!ours_ || is_over_) return std::nullopt;
  const TimePoint at_most = ours_->since + kMostTime;
  return waits_since_ ? std::min(at_most, *waits_since_ + kMostWait) : at_most;
}

// ------------------------------------------------------------------------------------------------------- ends

// Not during ours_, when the server's input belongs to the prefetch and the client's requests wait.
void Far::stop_reading() {
  if (std::exchange(is_blind_, true)) return;
  document_.reset();
  fetching_.drop_all();
  pushing_.dropped(fetching_);
  owed_.clear();
  owed_bytes_ = 0;
  to_lan(Slice::copy_of(std::exchange(request_, {})));
  to_stream(Slice::copy_of(std::exchange(response_, {})));
}

void Far::step_aside(modules::Reason reason) {
  stop_reading();
  if (lan_ended_ || std::exchange(aside_, true)) return;
  pushing_.end();
  out_.push_back(modules::StepAside{modules::Way::to_stream, reason});
}

void Far::twin_stepped_aside(TimePoint) {
  if (ours_ && !is_over_) {
    twin_aside_ = true;
    steps_aside_ = modules::Reason();
    fetching_.give_up();
    return;
  }
  step_aside({});
  out_.push_back(modules::StepAside{modules::Way::to_lan});
}

void Far::give_up_memory(TimePoint) {
  fetching_.give_up();
  if (is_over_) return;  // further input of the server does not belong to the flow
  if (ours_)
    steps_aside_ = modules::reasons::memory_limit;
  else
    step_aside(modules::reasons::memory_limit);
}

void Far::lan_ended(TimePoint, modules::Ending ending) {
  if (ours_ && !is_over_) return abandon();
  if (ending == modules::Ending::reset) return out_.push_back(modules::Abort{});
  if (!is_over_) to_stream(Slice::copy_of(std::exchange(response_, {})));
  fetching_.drop_all();
  pushing_.dropped(fetching_);
  lan_ended_ = true;
  pushing_.end();
  if (!aside_) out_.push_back(modules::EndStream{});
}

void Far::stream_ended(TimePoint, modules::Ending ending) {
  if (ending == modules::Ending::reset) return out_.push_back(modules::Abort{});
  stream_ended_ = true;
  fetching_.give_up();
  if (ours_ && !waiting_.empty()) return;
  is_over_ |= ours_.has_value();
  to_lan(Slice::copy_of(std::exchange(request_, {})));
  out_.push_back(modules::EndLan{});
}

}  // namespace longhaul::http
