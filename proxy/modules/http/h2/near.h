// SPDX-License-Identifier: Apache-2.0
// The half before an HTTP/2 client: it is the client's server and the server's client, and answers from the
// store of HTTP/1 (streams.h). What the server has heard before this half could read it is continued, or
// passes as it is.
#pragma once
#include <deque>
#include <memory>
#include <optional>

#include "proxy/modules/http/h2/pump.h"
#include "proxy/modules/http/h2/streams.h"
#include "proxy/modules/module.h"

namespace longhaul::http::h2 {

class Near final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;

  Near(const modules::Ends& ends, std::shared_ptr<Site> site, std::string_view verified_name = {})
      : place_(ends, verified_name), site_(std::move(site)), receiving_(site_, place_, ends.client) {}

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_lan_seen_late(TimePoint now, Slice bytes) override;
  void seen_late_is_over(TimePoint now) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint now, Slice message) override;
  void on_room(TimePoint now, const modules::Room& room) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_stepped_aside(TimePoint now) override;
  void on_timeout(TimePoint now) override;
  std::optional<modules::Output> poll_output() override;
  std::optional<TimePoint> next_timeout() const override { return look_at_; }
  std::size_t held_bytes() const override { return early_.size() + early_server_.size(); }
  std::size_t queued_bytes() const override { return streams_ ? streams_->queued_bytes() : 0; }
  std::size_t state_bytes() const override { return streams_ ? streams_->state_bytes() : 0; }
  void give_up_memory(TimePoint) override;
  const modules::Counters& counters() const override;
  modules::Reason reason() const override { return reason_; }
  std::string_view detail() const override { return state_ == State::runs ? "HTTP/2" : ""; }

 private:
  static constexpr std::size_t kMostEarlyBytes = 256 * 1024;
  // Of state when memory is short, besides the uploads that the windows allow.
  static constexpr std::size_t kMostStateBytes = (1 << 20) + Streams::kAllUpWindow;
  enum class State : std::uint8_t {
    early,  // nothing has been said to anybody
    runs,
    aside,
    over,
  };

  void begin(TimePoint now);
  void step_aside(modules::Reason reason);
  void pass_held();
  void feed_client(TimePoint now, Bytes bytes);
  void look(TimePoint now);
  void pump();
  void abort();

  Place place_;
  std::shared_ptr<Site> site_;
  Receiving receiving_;
  std::optional<TimePoint> look_at_;  // when waiting requests are checked again
  State state_ = State::early;
  Buffer early_, early_server_;
  std::size_t at_server_ = 0;  // of early_, its beginning
  bool late_is_over_ = false, is_on_ = true, uses_disk_ = true;
  std::unique_ptr<Streams> streams_;
  bool lan_ended_ = false, passes_to_lan_ = false;
  std::deque<modules::Output> out_;
  Pump pump_{out_, Pump::Client::at_lan};
  modules::Reason reason_{};
  mutable modules::Counters shown_;
};

}  // namespace longhaul::http::h2
