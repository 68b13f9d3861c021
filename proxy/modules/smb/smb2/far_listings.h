// SPDX-License-Identifier: Apache-2.0
// The far half's part for directories: fetches a listing that the client has begun (Enumerate, with a
// QUERY_DIRECTORY) to its end, as fast as the near half uses it (More), and pushes the Answers.
// near_listings.h returns them to the client.
#pragma once
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/modules/smb/smb2/listed_names.h"
#include "proxy/modules/smb/smb2/listing.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarListings final : public FarPart {
 public:
  explicit FarListings(FarSide& side) : side_(side) {}

  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  // A request that is about to be sent. Returns true if it is held, because it lists a directory for which a
  // query of ours is pending, and would otherwise get entries out of order.
  bool holds(const Message& message);
  std::size_t held_bytes() const { return held_bytes_; }  // of frames
  std::size_t state_bytes() const { return names_.bytes(); }
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  // Takes the response to a listing that was restarted for the near half.
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_ids_freed(TimePoint now) override;
  void stream_ended(TimePoint now) override;
  void on_watched(TimePoint now, const Open& open);
  bool quiet() const override { return held_.empty(); }

 private:
  struct Listing {
    MessageId generation{};  // the Enumerate to which it belongs
    std::uint8_t info_class = 0;
    Slice pattern;
    bool all = false;
    bool begun = false;   // its first response has arrived
    bool asking = false;  // a query of ours is pending at the server
    bool ended = false;
    std::uint64_t window_bytes = 0, pushed_bytes = 0, left_bytes = 0;
    ListedNames::List names;        // in the order of the listing
    std::size_t served = 0;         // how many of these must not be sent again
    std::vector<std::string> skip;  // sorted
  };

  void erase(const OpenKey& key);
  void fetch(TimePoint now, const OpenKey& key);
  void release(TimePoint now, const OpenKey& key);
  void give_up(const OpenKey& key);
  void listed(TimePoint now, const OpenKey& key, MessageId generation, Status status, const Slice& buffer);
  bool begun_with_open(const Element& element, const Pending& request);
  void told(const Element& element, const Pending& request);
  void push(const OpenKey& key, MessageId generation, Status status, Slice entries);

  // Limits of a listing that the client has not fetched: maximum, and the limit if it must be repeated.
  static constexpr std::uint64_t kWindowBytes = 4 << 20, kRepeatedWindowBytes = 128 << 10;
  std::uint64_t window_bytes() const;
  static constexpr std::uint32_t kQuestionBytes = 64 << 10;
  static constexpr std::size_t kMostOpening = 1 << 14;  // more than a client can have in flight
  static constexpr std::size_t kMostListings = 4096, kMostPatternBytes = 1 << 16;

  FarSide& side_;
  ListedNames names_;
  std::unordered_map<OpenKey, Listing, OpenKeyHash> listings_;
  std::unordered_map<OpenKey, ListedNames::List, OpenKeyHash> told_before_;  // see told()
  KeyedMap<MessageId, OpenKey> beginning_;          // by the id of the frame that begins the listing
  KeyedMap<MessageId, Listing> opening_;            // the same if it opens the directory, too
  std::unordered_set<OpenKey, OpenKeyHash> asked_;  // with a query of ours pending at the server
  std::unordered_map<OpenKey, std::deque<Message>, OpenKeyHash> held_;
  std::unordered_set<OpenKey, OpenKeyHash> wanting_ids_;
  std::size_t held_bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
