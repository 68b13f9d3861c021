// SPDX-License-Identifier: Apache-2.0
// The near half's searches: answers FIND_NEXT2 from entries fetched ahead, once and in order. A request that
// does not fit them is passed to the server, and so is the rest of a search once entries have waited here for
// a second: not every server reports changes made meanwhile.
#pragma once
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/search.h"

namespace longhaul::smb::smb1 {

class NearSearches {
 public:
  NearSearches(Outputs& out, Connection& connection, modules::Counters& counters)
      : out_(out), connection_(connection), counters_(counters) {}

  void on_surroundings(const Surroundings& surroundings) { features_ = surroundings.features; }
  // A request of the client. Returns true if it was answered.
  bool request(TimePoint now, const Message& message, const Slice& frame);
  // A frame of the server's response.
  void answered(const Message& answer, const Pending* request);
  // Returns false if it is not a response about a search.
  bool pushed(TimePoint now, const Answer& answer, const Slice& attached);
  // Entries ahead of this search are void.
  void far_dropped(const OpenKey& key);
  // Entries ahead of all searches are void: the client changes something, or changes by others may not have
  // been reported.
  void changed();
  bool is_idle() const { return waiting_.empty(); }
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  struct Page {
    std::uint32_t status = 0;
    Slice request;  // FIND_NEXT2 parameters as sent by the far half
    Slice attached;
    TimePoint came{};
  };
  struct Waiting {
    Header header;
    Slice frame;
    std::uint32_t max_data = 0;
    Slice parameters;
  };
  struct First {  // a FIND_FIRST2 without its response
    std::uint64_t changes = 0;
    bool closes = false;  // closes at once
  };
  bool give(const OpenKey& key, const Page& page, const Header& header, Bytes parameters,
            std::uint32_t max_data);
  void go_plain(const OpenKey& key);

  void erase_pages(const OpenKey& key);
  void forget_waiting(const OpenKey& key);
  static constexpr std::chrono::seconds kUnreportedLife{1};
  // The far half sends no more ahead, and no client has so many searches at a time: otherwise the connection
  // is reset.
  static constexpr std::size_t kMostHeldBytes = 16 << 20, kMostWaiting = 1024, kMostPlain = 1 << 17;

  Outputs& out_;
  Connection& connection_;
  modules::Counters& counters_;
  Features features_;
  std::size_t held_bytes_ = 0;
  std::uint64_t changes_ = 0;
  KeyedMap<MessageNumber, First> firsts_;
  std::unordered_map<OpenKey, std::deque<Page>, OpenKeyHash> pages_;
  std::unordered_set<OpenKey, OpenKeyHash> plain_;    // entries pushed for these are dropped
  std::unordered_set<OpenKey, OpenKeyHash> running_;  // entries may be pushed for these
  std::unordered_map<OpenKey, Waiting, OpenKeyHash> waiting_;
};

}  // namespace longhaul::smb::smb1
