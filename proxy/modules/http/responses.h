// SPDX-License-Identifier: Apache-2.0
// The server's side of an HTTP/1 connection at the near half: reads the responses to the requests that were
// sent on, passes them to the client, and stores what it may. near.h reads the requests.
#pragma once
#include <memory>
#include <optional>

#include "proxy/modules/http/awaited_responses.h"
#include "proxy/modules/http/body.h"
#include "proxy/modules/http/local_answers.h"
#include "proxy/modules/http/place.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/http/storing.h"
#include "proxy/modules/http/to_client.h"
#include "proxy/modules/http/to_server.h"

namespace longhaul::http {

class Responses {
 public:
  using TimePoint = modules::TimePoint;
  // Requests that wait for their responses: a client that sends more of them goes on without the cache.
  static constexpr std::size_t kMostAwaited = 1024;
  // Failed: no response to a request of the client would be correct; the connection must be reset.
  enum class Outcome : std::uint8_t { goes_on, failed };

  // The references outlive this object.
  Responses(std::shared_ptr<Site> site, const Place& place, LocalAnswers& answers, ToClient& client,
            ToServer& server)
      : site_(std::move(site)),
        place_(place),
        answers_(answers),
        to_client_(client),
        to_server_(server),
        storing_(site_) {}

  // Off: only stored responses that the server confirms are stored again.
  void use(bool on) { is_on_ = on; }
  void use_disk(bool on) { uses_disk_ = on; }

  // A request was sent to the server.
  void await(Awaited request);
  bool awaits_any() const { return !awaited_.empty(); }
  bool awaits_most() const { return awaited_.size() == kMostAwaited; }
  // Nothing of the server can come before a local response.
  bool is_idle() const { return !awaits_any() && !passes_ && !ended_; }

  // Called if nothing is awaited, and no request will be: all that is received passes unchanged from now on,
  // as it also does once it is not understood.
  void pass();
  bool passes() const { return passes_; }

  Outcome from_server(TimePoint now, Slice bytes);
  // The client has read: responses that wait for that go on.
  Outcome on_room();
  void server_ended();

  // Drops the response that is being stored; it still passes.
  void give_up_memory() { storing_.drop(); }
  std::size_t held_bytes() const { return held_.size(); }
  std::size_t state_bytes() const { return awaited_.bytes() + static_cast<std::size_t>(storing_.bytes()); }

 private:
  Outcome read_on(TimePoint now);
  Outcome read(TimePoint now);
  enum class Taken : std::uint8_t { yes, not_understood, failed };
  Taken take_head(TimePoint now, Bytes head);
  Taken take_not_modified(TimePoint now, const ResponseHead& response);
  // How much of the bytes is content of the current response, which may end with them; nullopt: not
  // understood.
  std::optional<std::size_t> take_content(Bytes bytes);
  void finish();
  Outcome not_understood();
  void pass_held();
  void end_client();

  std::shared_ptr<Site> site_;
  const Place& place_;
  LocalAnswers& answers_;
  ToClient& to_client_;
  ToServer& to_server_;

  AwaitedResponses awaited_;
  Buffer held_;  // a head that is not complete, or responses that wait for the client
  std::optional<TimePoint> waits_since_;
  bool in_response_ = false;  // to the first awaited request: its head has passed
  Body body_;
  Storing storing_;
  bool is_on_ = true, uses_disk_ = true;
  bool had_request_body_ = false;  // on this connection: nothing is stored from here on
  bool passes_ = false, ended_ = false;
};

}  // namespace longhaul::http
