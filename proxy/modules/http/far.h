// SPDX-License-Identifier: Apache-2.0
// The half before the server. It passes everything on, and between the client's requests it fetches what the pages that have
// passed embed, on the same connection, and pushes it to the near half. The client's own requests come first: one waits
// for at most the object that is being fetched, and that for a quarter of a second.
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
  // How long a request of the client waits for the end of an object, and how long an object may take at all.
  static constexpr link::Duration kMostWait = std::chrono::milliseconds(250), kMostTime = std::chrono::seconds(5);

  Far(const modules::Ends& ends, std::shared_ptr<Site> site, const std::string& owner) : fetching_(ends, std::move(site), owner) {}

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint, Slice) override { out_.push_back(modules::Abort{}); }  // the near half says nothing
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
  // An object that the server was asked for.
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
  std::optional<Fetching::Document> document_;  // the response that comes now, if it is read
  std::deque<modules::Output> out_;
  Pushing pushing_{out_, Pushing::Content::in_stream};
  Buffer request_, response_;  // heads that are not complete
  Body request_body_, response_body_;
  std::deque<RequestHead> owed_;  // the client's requests, whose responses the server owes
  std::size_t owed_bytes_ = 0;
  bool in_response_ = false;
  Content content_;

  std::optional<Ours> ours_;
  Buffer waiting_;  // what the client has said meanwhile
  std::optional<TimePoint> waits_since_;

  bool is_blind_ = false;  // nothing is read any more
  bool redialled_ = false;
  bool stream_ended_ = false, lan_ended_ = false;
  bool is_over_ = false;   // what the server still says is nobody's
  bool twin_aside_ = false, aside_ = false;
  std::optional<modules::Reason> steps_aside_;  // as soon as it can
  modules::Counters counters_;
};

}  // namespace longhaul::http
