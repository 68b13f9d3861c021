// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/near.h"

#include <algorithm>

#include "proxy/modules/http/h2/early.h"
#include "proxy/modules/http/reasons.h"

namespace longhaul::http::h2 {

void Near::on_surroundings(TimePoint now, const modules::Surroundings& told) {
  is_on_ = told.features.modules.value("http") != 0;
  receiving_.use(is_on_ && told.features.modules.value("http.prefetch") != 0);
  uses_disk_ = told.features.dedup_memory && told.features.dedup_disk;
  receiving_.use_disk(uses_disk_);
  receiving_.count_wasted(now);
  if (state_ == State::early && !is_on_) return step_aside({});
  if (state_ != State::runs) return;
  streams_->use_store(is_on_);
  streams_->use_disk(uses_disk_);
  pump();
}

const modules::Counters& Near::counters() const {
  shown_ = receiving_.counters();
  return streams_ ? shown_ += streams_->counters() : shown_;
}

std::optional<modules::Output> Near::poll_output() {
  if (out_.empty()) return std::nullopt;
  modules::Output first = std::move(out_.front());
  out_.pop_front();
  return first;
}

// --------------------------------------------------------------------------------------------- its beginning

void Near::from_lan_seen_late(TimePoint, Slice bytes) {
  if (state_ != State::early) return;
  append(early_, bytes.bytes());
  at_server_ += bytes.size();
}

void Near::seen_late_is_over(TimePoint now) {
  late_is_over_ = true;
  if (state_ == State::early && at_server_ > 0) begin(now);
}

void Near::from_lan(TimePoint now, Slice bytes) {
  switch (state_) {
    case State::early:
      append(early_, bytes.bytes());
      return begin(now);
    case State::runs:
      return feed_client(now, bytes.bytes());
    case State::aside:
      if (!pump_.has_ended_stream()) out_.push_back(modules::ToStream{std::move(bytes)});
      return;
    case State::over:
      return;
  }
}

// The server must not be told the rest of a frame otherwise than it began.
void Near::begin(TimePoint now) {
  if (early_.size() > kMostEarlyBytes) return step_aside(reasons::http_begun);
  if (at_server_ > 0 && !late_is_over_) return;
  std::size_t end = 0;
  if (at_server_ > 0) {
    const auto known = frame_end(early_, at_server_);
    if (!known || *known > early_.size()) return;
    end = *known;
  }
  streams_ = std::make_unique<Streams>(place_, site_, receiving_);
  if (at_server_ == 0) {
    streams_->begin();
  } else {
    if (!streams_->take_over(now, Bytes(early_).first(end))) return step_aside(reasons::http_begun);
    if (end > at_server_)
      out_.push_back(modules::ToStream{Slice::copy_of(Bytes(early_).subspan(at_server_, end - at_server_))});
  }
  state_ = State::runs;
  streams_->use_store(is_on_);
  streams_->use_disk(uses_disk_);
  const Buffer said = std::exchange(early_, {}), heard = std::exchange(early_server_, {});
  feed_client(now, Bytes(said).subspan(end));
  if (!heard.empty()) from_stream(now, Slice::copy_of(heard));
}

void Near::step_aside(modules::Reason reason) {
  if (state_ != State::early || lan_ended_) return;
  reason_ = reason;
  out_.push_back(modules::StepAside{modules::Way::to_stream, reason});
  pass_held();
}

void Near::pass_held() {
  state_ = State::aside;
  streams_.reset();
  const Bytes rest = Bytes(early_).subspan(at_server_);
  if (!rest.empty()) out_.push_back(modules::ToStream{Slice::copy_of(rest)});
  if (!early_server_.empty()) out_.push_back(modules::ToLan{Slice::copy_of(early_server_)});
  early_ = {}, early_server_ = {};
}

// What is known of the client, and no more: it goes on by itself. Where a twin has only stepped aside, its
// bytes are those that it passed before.
void Near::twin_stepped_aside(TimePoint) {
  step_aside(reasons::http_begun);
  if (state_ != State::aside || pump_.has_ended_lan() || std::exchange(passes_to_lan_, true)) return;
  out_.push_back(modules::StepAside{modules::Way::to_lan});
}

// ------------------------------------------------------------------------------------------------ as it runs

void Near::feed_client(TimePoint now, Bytes bytes) {
  const bool goes_on = bytes.empty() || streams_->from_client(now, bytes);
  look(now);
  pump();
  if (!goes_on) abort();
}

void Near::from_twin(TimePoint now, Slice message) {
  if (!receiving_.from_twin(now, message.bytes())) return abort();
  on_timeout(now);
}

void Near::on_timeout(TimePoint now) {
  if (state_ != State::runs || !streams_->waits()) return;
  look(now);
  pump();
}

void Near::look(TimePoint now) {
  look_at_.reset();
  streams_->look(now);
  if (streams_->waits()) look_at_ = now + Receiving::kLook;
}

void Near::from_stream(TimePoint now, Slice bytes) {
  bytes = receiving_.from_stream(now, std::move(bytes));
  on_timeout(now);
  if (bytes.empty()) return;
  switch (state_) {
    case State::early:
      append(early_server_, bytes.bytes());
      if (early_server_.size() > kMostEarlyBytes) step_aside(reasons::http_begun);
      return;
    case State::runs:
      if (!streams_->from_server(now, bytes.bytes())) streams_->server_ended();
      return pump();
    case State::aside:
      if (!pump_.has_ended_lan()) out_.push_back(modules::ToLan{std::move(bytes)});
      return;
    case State::over:
      return;
  }
}

void Near::on_room(TimePoint, const modules::Room& room) {
  if (state_ != State::runs) return;
  pump_.on_room(room);
  pump();
}

void Near::pump() {
  if (state_ != State::runs || !pump_.run(*streams_)) return;
  state_ = State::over;
  pump_.end_stream();
  pump_.end_lan();
}

// ------------------------------------------------------------------------------------------------------ ends

void Near::lan_ended(TimePoint, modules::Ending ending) {
  if (ending == modules::Ending::reset) return abort();
  lan_ended_ = true;
  if (state_ == State::early) pass_held();
  if (state_ == State::runs) {
    streams_->client_ended();
    pump();
    state_ = State::over;
    pump_.end_lan();
  }
  pump_.end_stream();
}

void Near::stream_ended(TimePoint, modules::Ending ending) {
  if (ending == modules::Ending::reset) return abort();
  receiving_.end();
  if (state_ == State::early) step_aside({});
  if (state_ != State::runs) return pump_.end_lan();
  streams_->server_ended();
  pump();
}

void Near::give_up_memory(TimePoint) {
  if (state_ == State::early) return step_aside(modules::reasons::memory_limit);
  if (state_ != State::runs) return;
  streams_->drop_pending();
  // Two connections with streams of their own cannot be continued without this half.
  if (streams_->state_bytes() > kMostStateBytes) abort();
}

void Near::abort() {
  state_ = State::over;
  out_.push_back(modules::Abort{});
}

}  // namespace longhaul::http::h2
