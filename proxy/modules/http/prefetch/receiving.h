// SPDX-License-Identifier: Apache-2.0
// The near half of prefetch: receives the objects that the far half announces and pushes on this connection,
// and finds the object that answers a request of the client, on any connection.
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
  // How often a waiting request checks for its object, and how long the bringing connection may be silent.
  static constexpr link::Duration kLook = std::chrono::milliseconds(2), kMostSilence = std::chrono::seconds(1);

  Receiving(std::shared_ptr<Site> site, const Place& place, const modules::Address& client);
  ~Receiving() { end(); }
  Receiving(const Receiving&) = delete;

  void use(bool on) { is_on_ = on; }
  void use_disk(bool on) { uses_disk_ = on; }  // off: objects are stored in memory only
  // Returns false if the message is invalid.
  bool from_twin(TimePoint now, Bytes message);
  // The flow's bytes without those of objects.
  Slice from_stream(TimePoint now, Slice bytes);
  // Nothing more will arrive.
  void end();

  // Whether this request has to wait for an incomplete object.
  bool must_wait(TimePoint now, const std::string& key, const RequestHead& request);
  // The response to the request, removed from the pushed objects. Returns null if there is none.
  Object take(TimePoint now, const std::string& key, const RequestHead& request);
  // After a request that may change something, objects fetched before it are not used.
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
  bool is_on_ = true, uses_disk_ = true;
  Progress progress_ = std::make_shared<TimePoint>();
  std::deque<PushedObject> announced_;  // without finished ones at the front; null: finished or not accepted
  std::uint64_t first_ = 0;             // the number of the first one
  std::optional<Piece> piece_;          // the current one
  std::uint32_t piece_left_ = 0;
  modules::Counters counters_;
};

// The head of a pushed response for a client, and in HTTP/1 syntax.
ResponseHead pushed_answer(const Stored& response);
Slice pushed_head(const Stored& response, bool closes);

}  // namespace longhaul::http
