// SPDX-License-Identifier: Apache-2.0
// The far half's searches: continues a client's FIND_FIRST2 to its end and pushes each response, in the form
// of a response to the client's own FIND_NEXT2, while the folder is watched (far_watch.h). A FIND_NEXT2 whose
// response is already under way is swallowed; one with other parameters, or after a change, ends the
// fetching, and is sent with the client's position.
//
// The server may not find that position any more: the entry may be deleted, and smbd remembers only the last
// hundred names. It then reports the end of the listing. So pushed entries are kept until the client has
// passed them, and returned in that case: some may have changed, but none is missing. When the last of them
// are returned, the next are fetched at once, while the server still finds the position where they begin.
#pragma once
#include <deque>
#include <unordered_map>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb1/far_watch.h"
#include "proxy/modules/smb/smb1/search.h"
#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class FarSearches {
 public:
  FarSearches(Outputs& out, ServerLeg& leg, Connection& connection, FarWatch& watch,
              modules::Counters& counters)
      : out_(out), leg_(leg), connection_(connection), watch_(watch), counters_(counters) {}

  void on_surroundings(const Surroundings& surroundings) { features_ = surroundings.features; }
  // A request of the client: returns the frame to be sent to the server, or nullopt if it is swallowed.
  std::optional<Slice> request(const Message& message, const Slice& frame);
  // A frame of the server's response to the client, and the request if this was the last frame.
  void answered(const Message& answer, const std::optional<Pending>& request);
  void consumed(const More& more);
  void near_dropped(const Drop& drop);
  // Entries ahead of the client were changed, or may change without notice from now on.
  void changed(const OpenKey& key);
  void stop() { stopped_ = true; }
  void pump();
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  struct Position {
    std::uint32_t resume_key = 0;
    Buffer name;
  };
  struct First {  // a FIND_FIRST2 without its response
    FindFirst asked;
    FileName pattern;
    std::uint16_t max_data = 0, flags2 = 0;
    Assembly answer;
  };
  struct Page {
    Position end;
    std::uint32_t status = 0;
    Slice attached;
  };
  struct Search {
    std::uint16_t uid = 0, tid = 0, sid = 0, flags2 = 0, max_data = 0;
    FindFirst asked;
    Position server;         // the server's position
    Position client;         // the client's position
    std::deque<Page> pages;  // that the client has not passed yet
    std::size_t pushed = 0;  // how many of them, from the first, were pushed
    std::size_t page_bytes = 0;
    bool fetching = false;
    bool owed = false;     // a swallowed FIND_NEXT2 is to be answered from the current fetch
    bool over = false;     // the last entry is among the pages
    bool changed = false;  // nothing more is pushed, except for pending requests
    bool plain = false;    // the near half was informed of that
    bool astray = false;   // the server's position is not `server`
    bool ended = false;    // by the client, while it was owed
    Assembly answer;
    bool is_ahead() const { return astray || fetching || !pages.empty(); }
  };
  using Searches = std::unordered_map<OpenKey, Search, OpenKeyHash>;
  struct Again {  // a FIND_NEXT2 of the client that is sent with the client's position
    OpenKey key;
    Header header;
    std::uint16_t count = 0, level = 0, flags = 0;
    std::uint32_t max_data = 0;
    Assembly answer;
  };
  void begun(const Header& header, First& first);
  void fetch(const OpenKey& key, Search& search);
  ServerLeg::Parts fetched(const OpenKey& key, const Message& answer);
  void push(const OpenKey& key, Search& search, std::uint32_t status);
  Page take_page(Search& search);
  void finish(Searches::iterator search, std::uint16_t flags);
  void erase(Searches::iterator search);
  void end(Searches::iterator search);
  bool ask_again(Search& search, const FindNext& next, const Header& header, const Transaction& part);
  ServerLeg::Parts asked_again(MessageNumber number, const Message& answer);
  void give_kept(Searches::iterator search, const Again& again);
  void answer(const Header& request, std::uint32_t status, Bytes parameters, Bytes data);

  // Limits of data ahead of the client, for one listing and for all.
  static constexpr std::size_t kMostAheadBytes = 2 << 20, kMostHeldBytes = 8 << 20;
  static constexpr std::size_t kMostSearches = 64;

  Outputs& out_;
  ServerLeg& leg_;
  Connection& connection_;
  FarWatch& watch_;
  modules::Counters& counters_;
  Features features_;
  KeyedMap<MessageNumber, First> firsts_;
  Searches searches_;
  KeyedMap<MessageNumber, Again> again_;
  std::size_t held_bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace longhaul::smb::smb1
