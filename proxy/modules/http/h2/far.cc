// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/far.h"

#include <algorithm>

namespace longhaul::http::h2 {

Far::Far(const modules::Ends& ends, std::shared_ptr<Site> site, const std::string& owner, std::string_view verified_name,
         Pushing::Content content)
    : place_(ends, verified_name), fetching_(ends, site, owner, verified_name), pushing_(out_, content),
      ahead_(fetching_, pushing_, std::string(place_.scheme())),
      streams_(std::make_unique<Streams>(place_, std::move(site), ahead_)) {
  streams_->begin();
}

void Far::on_surroundings(TimePoint, const modules::Surroundings& told) {
  fetching_.on_surroundings(told);
  pushing_.dropped(fetching_);
}

std::optional<modules::Output> Far::poll_output() {
  if (out_.empty()) return std::nullopt;
  modules::Output first = std::move(out_.front());
  out_.pop_front();
  return first;
}

const modules::Counters& Far::counters() const {
  shown_ = streams_->counters();
  shown_.injected += ahead_.injected();
  return shown_;
}

void Far::from_stream(TimePoint now, Slice bytes) {
  if (is_over_) return;
  const bool goes_on = streams_->from_client(now, bytes.bytes());
  pump();
  if (!goes_on) abort();
}

void Far::from_lan(TimePoint now, Slice bytes) {
  if (is_over_) return;
  if (!streams_->from_server(now, bytes.bytes())) streams_->server_ended();
  pump();
}

void Far::on_room(TimePoint, const modules::Room& room) {
  if (is_over_) return;
  pump_.on_room(room);
  pump();
}

void Far::pump() {
  if (is_over_ || !pump_.run(*streams_)) return;
  is_over_ = true;
  pump_.end_lan();
  end_stream();
}

void Far::stream_ended(TimePoint, modules::Ending ending) {
  if (ending == modules::Ending::reset) return abort();
  if (!is_over_) {
    ahead_.stop();
    streams_->client_ended();
    pump();
    is_over_ = true;
    end_stream();
  }
  pump_.end_lan();
}

void Far::lan_ended(TimePoint, modules::Ending ending) {
  if (ending == modules::Ending::reset) return abort();
  if (is_over_) return end_stream();
  streams_->server_ended();
  pump();
}

// No further prefetch. Two connections with streams of their own cannot be continued without this half.
void Far::give_up_memory(TimePoint) {
  if (is_over_) return;
  fetching_.give_up();
  fetching_.drop_all();
  pushing_.dropped(fetching_);
  streams_->drop_pending();
  if (streams_->state_bytes() > kMostStateBytes) abort();
}

void Far::end_stream() {
  pushing_.end();
  pump_.end_stream();
}

void Far::abort() {
  is_over_ = true;
  out_.push_back(modules::Abort{});
}

}  // namespace longhaul::http::h2
