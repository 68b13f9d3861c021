// SPDX-License-Identifier: Apache-2.0
// The far half's searches: goes on with a client's FIND_FIRST2 to its end and pushes each answer, as the
// client's own FIND_NEXT2 would have got it. A FIND_NEXT2 that finds answers on their way is swallowed; one
// that asks for something else ends the fetching, and gets the position that its client believes in.
#pragma once
#include <deque>
#include <unordered_map>

#include "proxy/modules/smb/smb1/search.h"
#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class FarSearches {
 public:
  FarSearches(Outputs& out, ServerLeg& leg, Connection& connection, modules::Counters& counters)
      : out_(out), leg_(leg), connection_(connection), counters_(counters) {}

  void on_surroundings(const modules::Surroundings& surroundings) { features_ = surroundings.features; }
  // A request of the client: the frame that is to go to the server, or none: it is swallowed.
  std::optional<Slice> request(const Message& message, const Slice& frame);
  // A frame of the server's answer to the client, and the request where it was the last one.
  void answered(const Message& answer, const std::optional<Pending>& request);
  void consumed(const More& more);
  void near_dropped(const Drop& drop);
  void stop() { stopped_ = true; }
  void pump();

 private:
  struct Position {
    std::uint32_t resume_key = 0;
    Buffer name;
  };
  struct First {  // a FIND_FIRST2 without its answer
    FindFirst asked;
    std::uint16_t max_data = 0, flags2 = 0;
    Assembly answer;
  };
  struct Search {
    std::uint16_t uid = 0, tid = 0, sid = 0, flags2 = 0, max_data = 0;
    FindFirst asked;
    Position server;              // where the server goes on
    Position client;              // where the client believes it goes on
    std::deque<Position> pushed;  // ends of the answers that the client has not taken yet
    std::size_t pushed_bytes = 0;
    std::deque<std::size_t> sizes;
    bool fetching = false;
    bool over = false;   // its last entry is pushed
    bool plain = false;  // nothing more is pushed: the client goes its own way
    Assembly answer;
  };
  void begun(const Header& header, First& first);
  void fetch(const OpenKey& key, Search& search);
  ServerLeg::Parts fetched(const OpenKey& key, const Message& answer);
  void push(const OpenKey& key, Search& search, std::uint32_t status);

  // As much listing as is ahead of one client at most.
  static constexpr std::size_t kMostAheadBytes = 2 << 20;
  static constexpr std::size_t kMostSearches = 64;

  Outputs& out_;
  ServerLeg& leg_;
  Connection& connection_;
  modules::Counters& counters_;
  config::Features features_;
  std::unordered_map<MessageNumber, First> firsts_;
  std::unordered_map<OpenKey, Search, OpenKeyHash> searches_;
  bool stopped_ = false;
};

}  // namespace longhaul::smb::smb1
