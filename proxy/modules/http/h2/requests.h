// SPDX-License-Identifier: Apache-2.0
// Decides what happens to a client's request: it is answered here, waits for an object in transit, or is sent
// to the server. streams.h passes on its content and the server's response.
#pragma once
#include <vector>

#include "proxy/modules/http/h2/exchanges.h"
#include "proxy/modules/http/h2/local_answers.h"

namespace longhaul::http::h2 {

class Requests {
 public:
  using TimePoint = link::TimePoint;
  static constexpr std::uint32_t kMostStreams = 128;

  // `client` and `server`: the connections with them. All outlive this.
  Requests(const Place& place, LocalAnswers& answers, Exchanges& exchanges, Session& client, Session& server)
      : place_(place), answers_(answers), exchanges_(exchanges), client_(client), server_(server) {}

  // A new one. `ends`: it has no content.
  void open(TimePoint now, StreamId stream, Fields block, bool ends);
  // Checks whether objects that requests wait for have arrived.
  void look(TimePoint now);
  bool waits() const { return !waiting_.empty(); }

  void respond(Exchange& exchange, const Fields& block);
  void ask(Exchange& exchange);

  // Requests that are opened meanwhile are at the server already, on the streams of the client's.
  void begin_late() { is_late_ = true; }
  void end_late() { is_late_ = false; }
  // Requests that cannot be answered here are refused from here on.
  void server_ended() { server_gone_ = true; }
  bool is_server_gone() const { return server_gone_; }

 private:
  bool answer_here(TimePoint now, Exchange& exchange);

  const Place& place_;
  LocalAnswers& answers_;
  Exchanges& exchanges_;
  Session& client_;
  Session& server_;
  std::vector<StreamId> waiting_;  // of the client
  bool is_late_ = false, server_gone_ = false;
};

}  // namespace longhaul::http::h2
