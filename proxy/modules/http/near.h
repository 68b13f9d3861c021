// SPDX-License-Identifier: Apache-2.0
// The half before the client. It reads requests and responses as they pass, stores what RFC 9111 lets a shared cache
// store, answers from that while it is fresh, and otherwise has the server asked whether it has changed.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "proxy/modules/http/awaited_responses.h"
#include "proxy/modules/http/body.h"
#include "proxy/modules/http/caching.h"
#include "proxy/modules/http/local_answers.h"
#include "proxy/modules/http/place.h"
#include "proxy/modules/http/prefetch/receiving.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/http/stored_answer.h"
#include "proxy/modules/http/storing.h"
#include "proxy/modules/http/to_client.h"
#include "proxy/modules/http/to_server.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class Near final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;
  // Requests that wait for their responses: a client that sends more of them goes on without the cache.
  static constexpr std::size_t kMostExchanges = 1024;

  // `verified_name`: of the server of a decrypted connection, by its certificate; empty: it is in the clear.
  Near(const modules::Ends& ends, std::shared_ptr<Site> site, std::string_view verified_name = {});

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_lan_seen_late(TimePoint now, Slice bytes) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint now, Slice message) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_stepped_aside(TimePoint now) override;
  void on_timeout(TimePoint now) override;
  void on_room(TimePoint now, const modules::Room& room) override;
  std::optional<modules::Output> poll_output() override;
  std::optional<TimePoint> next_timeout() const override { return look_at_; }
  std::size_t held_bytes() const override { return request_.size() + response_.size(); }
  std::size_t state_bytes() const override {
    return awaited_.bytes() + static_cast<std::size_t>(storing_.bytes());
  }
  void give_up_memory(TimePoint) override;
  const modules::Counters& counters() const override;
  modules::Reason reason() const override { return reason_; }
  std::string_view detail() const override { return detail_; }

 private:
  void read_requests(TimePoint now);
  bool take_request(TimePoint now, Bytes head);
  bool may_answer_now() const;
  LocalAnswers::Allowed allowed_now() const;
  bool waits(TimePoint now, Bytes head);
  void end_after_answer();
  void forward(RequestHead request, std::string key, Bytes head, Object ask_about);
  void requests_pass(modules::Reason reason);

  void read_on(TimePoint now);
  void read_responses(TimePoint now);
  bool take_response(TimePoint now, Bytes head);
  void response_done(TimePoint now);
  void finish_exchange();
  void responses_pass();
  void responses_ended();
  void abort();
  void review();

  std::shared_ptr<Site> site_;
  Place place_;
  Receiving receiving_;
  std::deque<modules::Output> out_;
  ToClient to_client_{out_};
  ToServer to_server_{out_};
  LocalAnswers answers_;

  Buffer request_, response_;                // heads that are not complete, and responses that wait for room
  std::optional<TimePoint> responses_wait_;  // since then
  Body request_body_, response_body_;
  AwaitedResponses awaited_;
  std::optional<TimePoint> look_at_;  // when the first request in request_ checks again for its object
  bool uses_disk_ = true;
  Storing storing_;  // the response that comes now

  bool had_body_ = false;  // a request on this connection: nothing is stored from here on
  bool in_response_ = false, requests_pass_ = false, responses_pass_ = false, is_on_ = true;
  bool lan_ended_ = false, stream_ended_ = false;  // from outside
  bool twin_aside_ = false, stepped_aside_to_lan_ = false, aborted_ = false;
  modules::Reason reason_{};
  std::string detail_;
  mutable modules::Counters shown_;
};

}  // namespace longhaul::http
