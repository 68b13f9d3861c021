// SPDX-License-Identifier: Apache-2.0
// The near half's searches: answers FIND_NEXT2 from what the far half fetched on, once and in order. A
// request that does not fit what was fetched gives the search back to its client.
#pragma once
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/search.h"

namespace longhaul::smb::smb1 {

class NearSearches {
 public:
  NearSearches(Outputs& out, Connection& connection, modules::Counters& counters)
      : out_(out), connection_(connection), counters_(counters) {}

  // A request of the client. True: answered.
  bool request(const Message& message, const Slice& frame);
  // A frame of the server's answer to it.
  void answered(const Message& answer, const Pending* request);
  // False: no answer about a search.
  bool pushed(const Answer& answer, const Slice& attached);
  // What is ahead of this search holds no more.
  void far_dropped(const OpenKey& key);
  // What is ahead of any search: the client changes something, or changes of others may not have been told.
  void changed();
  bool is_idle() const { return waiting_.empty(); }
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  struct Page {
    std::uint32_t status = 0;
    Slice request;  // FIND_NEXT2 parameters as the far half asked
    Slice attached;
  };
  struct Waiting {
    Header header;
    Slice frame;
    std::uint32_t max_data = 0;
    Slice parameters;
  };
  struct First {  // a FIND_FIRST2 without its answer
    std::uint64_t changes = 0;
    bool closes = false;  // at once
  };
  bool give(const OpenKey& key, const Page& page, const Header& header, Bytes parameters,
            std::uint32_t max_data);
  void go_plain(const OpenKey& key);

  void erase_pages(const OpenKey& key);
  void forget_waiting(const OpenKey& key);
  // A twin of ours sends no more ahead, and no client searches so much at a time: the connection is reset.
  static constexpr std::size_t kMostHeldBytes = 16 << 20, kMostWaiting = 1024, kMostPlain = 1 << 17;

  Outputs& out_;
  Connection& connection_;
  modules::Counters& counters_;
  std::size_t held_bytes_ = 0;
  std::uint64_t changes_ = 0;
  std::unordered_map<MessageNumber, First> firsts_;
  std::unordered_map<OpenKey, std::deque<Page>, OpenKeyHash> pages_;
  std::unordered_set<OpenKey, OpenKeyHash> plain_;    // what is pushed for these is dropped
  std::unordered_set<OpenKey, OpenKeyHash> running_;  // something may be pushed for these
  std::unordered_map<OpenKey, Waiting, OpenKeyHash> waiting_;
};

}  // namespace longhaul::smb::smb1
