// SPDX-License-Identifier: Apache-2.0
// The near half's part of prefetch: takes in what the far half announces and pushes on this connection, and says which of it
// answers a request of the client, whichever connection that comes by.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "proxy/modules/counters.h"
#include "proxy/modules/http/place.h"
#include "proxy/modules/http/prefetch/messages.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class Receiving {
 public:
  using TimePoint = link::TimePoint;
  // How often a request that waits for an object asks whether it is there, and how long the line may bring nothing for it.
  static constexpr link::Duration kLook = std::chrono::milliseconds(2), kMostSilence = std::chrono::seconds(1);

  Receiving(std::shared_ptr<Site> site, const Place& place, const modules::Address& client);
  ~Receiving() { end(); }
  Receiving(const Receiving&) = delete;

  void use(bool on) { is_on_ = on; }
  // False: the twin is another program.
  bool from_twin(TimePoint now, Bytes message);
  // What is left of the flow's bytes without those of objects.
  Slice from_stream(TimePoint now, Slice bytes);
  // Nothing more will come.
  void end();

  // Whether this request has to wait for an object that is coming.
  bool must_wait(TimePoint now, const std::string& key, const RequestHead& request);
  // The response to it; it is used with that. Null: there is none.
  Object take(TimePoint now, const std::string& key, const RequestHead& request);
  // A request that may change something: what was fetched before it answers nothing after it.
  void note_request(const RequestHead& request);

  bool may_have_any() const { return site_->pushed.has_any(client_); }
  void count_wasted(TimePoint now);
  const modules::Counters& counters() const { return counters_; }

 private:
  bool announce(TimePoint now, const Announced& said);
  bool begin_piece(const Piece& piece);
  void take_piece(TimePoint now, Bytes bytes);
  void finish(TimePoint now, const PushedObject& object);
  PushedObject of(std::uint64_t number) const;

  std::shared_ptr<Site> site_;
  const Place& place_;
  modules::Address client_;
  bool is_on_ = true;
  Progress progress_ = std::make_shared<TimePoint>();
  std::deque<PushedObject> announced_;  // those before are over; null: over, or not taken
  std::uint64_t first_ = 0;             // the number of the first one
  std::optional<Piece> piece_;          // that comes now
  std::uint32_t piece_left_ = 0;
  modules::Counters counters_;
};

// The head of a pushed response as a client gets it, and as HTTP/1.
ResponseHead pushed_answer(const Stored& response);
Slice pushed_head(const Stored& response, bool closes);

}  // namespace longhaul::http
