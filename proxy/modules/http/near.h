// SPDX-License-Identifier: Apache-2.0
// The half before the client. It reads requests and responses as they pass, stores what RFC 9111 lets a
// shared cache store, answers from that while it is fresh, and otherwise has the server asked whether it has
// changed. This file has the requests and the ends of the connection; responses.h has the responses.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "proxy/modules/http/body.h"
#include "proxy/modules/http/local_answers.h"
#include "proxy/modules/http/place.h"
#include "proxy/modules/http/prefetch/receiving.h"
#include "proxy/modules/http/responses.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/http/to_client.h"
#include "proxy/modules/http/to_server.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class Near final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;
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
  std::size_t held_bytes() const override { return request_.size() + responses_.held_bytes(); }
  std::size_t state_bytes() const override { return responses_.state_bytes(); }
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
  void forward(Awaited request, Bytes head);
  void requests_pass(modules::Reason reason);
  void look_again(TimePoint now);
  void after(Responses::Outcome outcome);
  void abort();
  void review();

  std::shared_ptr<Site> site_;
  Place place_;
  Receiving receiving_;
  std::deque<modules::Output> out_;
  ToClient to_client_{out_};
  ToServer to_server_{out_};
  LocalAnswers answers_;

  Responses responses_;

  Buffer request_;  // a head that is not complete, or requests that wait
  Body request_body_;
  bool shares_content_ = false;       // of this body
  std::optional<TimePoint> look_at_;  // when the first request in request_ checks again for its object

  bool is_on_ = true, lan_ended_ = false, twin_aside_ = false, aborted_ = false;
  modules::Reason reason_{};
  std::string detail_;
  mutable modules::Counters shown_;
};

}  // namespace longhaul::http
