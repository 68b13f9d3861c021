// SPDX-License-Identifier: Apache-2.0
// The far half for HTTP/2: a client of the server and a server for the near half, so that it can prefetch on its own streams
// (ahead.h).
#pragma once
#include <deque>
#include <memory>

#include "proxy/modules/http/h2/pump.h"
#include "proxy/modules/http/h2/streams.h"
#include "proxy/modules/module.h"

namespace longhaul::http::h2 {

class Far final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;

  // `verified_name`: as in Near; `content`: how objects travel to the near half.
  Far(const modules::Ends& ends, std::shared_ptr<Site> site, const std::string& owner, std::string_view verified_name,
      Pushing::Content content);

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint, Slice) override { abort(); }  // the near half sends none
  void on_room(TimePoint now, const modules::Room& room) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  // A near half never does after the connection has begun.
  void twin_stepped_aside(TimePoint) override { abort(); }
  void on_timeout(TimePoint) override {}
  std::optional<modules::Output> poll_output() override;
  std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
  // Input of the server that waits for room in the stream.
  std::size_t held_bytes() const override { return streams_->queued_bytes(); }
  std::size_t state_bytes() const override { return streams_->state_bytes(); }
  void give_up_memory(TimePoint) override;
  const modules::Counters& counters() const override;
  std::string_view detail() const override { return "HTTP/2"; }

 private:
  // As in Near.
  static constexpr std::size_t kMostStateBytes = (1 << 20) + Streams::kAllLanWindow;
  void pump();
  void end_stream();
  void abort();

  Place place_;
  std::deque<modules::Output> out_;
  Fetching fetching_;
  Pushing pushing_;
  Ahead ahead_;
  std::unique_ptr<Streams> streams_;
  Pump pump_{out_, Pump::Client::at_stream};
  bool is_over_ = false;
  mutable modules::Counters shown_;
};

}  // namespace longhaul::http::h2
