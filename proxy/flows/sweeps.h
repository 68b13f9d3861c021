// SPDX-License-Identifier: Apache-2.0
// Runs the caller's action on every flow over a link, or on all flows: some in each turn of the event loop,
// because one peer may have tens of thousands.
#pragma once
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "proxy/flows/linked_flow.h"

namespace longhaul::flows {

class Sweeps {
 public:
  using FlowsById = std::map<FlowId, std::unique_ptr<LinkedFlow>>;
  // In order of urgency.
  enum class Kind : std::uint8_t { decide_anew, peer_gone, run_modules, apply_features };
  // May destroy the flow and start others; counts its work (codecs/work.h).
  using Visit = std::function<void(FlowId, LinkedFlow&)>;

  // `flows` outlives this object.
  Sweeps(boost::asio::io_context& io, const FlowsById& flows);
  ~Sweeps();

  // `link`: null for the flows of all links. Flows that start meanwhile are visited, too. `done` is called
  // after the last visit. If a sweep of the same kind and link is already waiting, none is added.
  void begin(Kind kind, const link::PeerLink* link, Visit visit, std::function<void()> done = {});
  bool under_way(Kind kind, const link::PeerLink& link) const;

  // In units of codecs/work.h: the cost of closing or dialling a socket. Modules count their own records.
  static constexpr std::uint64_t kWorkPerVisit = 20'000;

  struct Counters {
    std::uint64_t turns = 0, visits = 0, most_visits = 0;  // most_visits: in one turn
  };
  const Counters& counters() const { return counters_; }

 private:
  void turn_soon();
  void turn();

  struct Sweep {
    Kind kind;
    const link::PeerLink* link;
    Visit visit;
    std::function<void()> done;
    FlowId last = 0;
  };
  boost::asio::io_context& io_;
  const FlowsById& flows_;
  std::deque<Sweep> sweeps_;  // run one after the other, urgent ones first
  Counters counters_;
  std::shared_ptr<Sweeps*> self_;
};

}  // namespace longhaul::flows
