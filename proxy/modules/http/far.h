// SPDX-License-Identifier: Apache-2.0
// The far half for HTTP/1. It passes everything on. Between the client's requests it fetches the objects that pages embed, on
// the same connection, and pushes them to the near half. A request of the client waits at most for the object in progress,
// and at most a quarter of a second.
#pragma once
#include <deque>
#include <memory>
#include <optional>

#include "proxy/modules/http/body.h"
#include "proxy/modules/http/prefetch/fetching.h"
#include "proxy/modules/http/prefetch/pushing.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class Far final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;
  static constexpr std::size_t kMostOwed = 1024, kMostWaitingBytes = 256 * 1024;
  // How long a request of the client waits for the end of an object, and how long an object may take in total.
  static constexpr link::Duration kMostWait = std::chrono::milliseconds(250), kMostTime = std::chrono::seconds(5);

  Far(const modules::Ends& ends, std::shared_ptr<Site> site, const std::string& owner) : fetching_(ends, std::move(site), owner) {}

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint, Slice) override { out_.push_back(modules::Abort{}); }  // the near half sends none
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_stepped_aside(TimePoint now) override;
  void on_timeout(TimePoint now) override;
  std::optional<modules::Output> poll_output() override;
  std::optional<TimePoint> next_timeout() const override;
  std::size_t held_bytes() const override { return request_.size() + response_.size() + waiting_.size(); }
  std::size_t state_bytes() const override { return owed_bytes_; }
  void give_up_memory(TimePoint) override;
  const modules::Counters& counters() const override { return counters_; }

 private:
  // A request of the far half that the server has not answered completely.
  struct Ours {
    Fetching::Next object;
    TimePoint since;
    ResponseHead response;
    bool is_used = true, closes = false;
    std::uint64_t bytes = 0;  // of its response
  };

  void read_requests(Slice bytes);
  bool take_request(Bytes head);
  void read_responses(TimePoint now);
  bool take_response(TimePoint now, Bytes head);
  bool take_our_head(Bytes head);
  std::optional<std::size_t> take_body(TimePoint now, const Slice& bytes);
  void body_passes(TimePoint now, Slice raw);
  void response_done(TimePoint now);
  void fetch(TimePoint now);
  void abandon();
  void after_ours();
  void stop_reading();
  void step_aside(modules::Reason reason);
  void to_lan(Slice bytes);
  void to_stream(Slice bytes);

  Fetching fetching_;
  std::optional<Fetching::Document> document_;  // the current response, if it is parsed
  std::deque<modules::Output> out_;
  Pushing pushing_{out_, Pushing::Content::in_stream};
  Buffer request_, response_;  // incomplete heads
  Body request_body_, response_body_;
  std::deque<RequestHead> owed_;  // the client's requests without a complete response
  std::size_t owed_bytes_ = 0;
  bool in_response_ = false;
  Content content_;

  std::optional<Ours> ours_;
  Buffer waiting_;  // input of the client during ours_
  std::optional<TimePoint> waits_since_;

  bool is_blind_ = false;  // nothing is parsed any more
  bool redialled_ = false;
  bool stream_ended_ = false, lan_ended_ = false;
  bool is_over_ = false;   // further input of the server is dropped
  bool twin_aside_ = false, aside_ = false;
  std::optional<modules::Reason> steps_aside_;  // after ours_
  modules::Counters counters_;
};

}  // namespace longhaul::http
