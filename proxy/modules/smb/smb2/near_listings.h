// SPDX-License-Identifier: Apache-2.0
// The near half's part for directories: a client's first QUERY_DIRECTORY is passed on with a request to fetch
// the listing to its end, and the following ones are answered from the fetched entries. near_metadata.h has
// other metadata.
//
// A listing belongs to one open and is returned once, in the server's order, after the client has requested
// its beginning. Its rest becomes void by a change that this connection makes in the share, by changes of
// others that the far half reports (Watched; with `smb.metadata = relaxed` by age instead), after a second,
// because not every server reports them, or by a request for another class of entries: then the far half
// lists again and omits entries that the client has received.
// Clients that open and list in one compound get the beginning from the server itself, and the rest is
// fetched after it; if it is not (the feature was off) both halves record which entries the client received.
#pragma once
#include <deque>
#include <unordered_map>

#include "proxy/modules/smb/smb2/fetched_listing.h"
#include "proxy/modules/smb/smb2/name_changes.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class NearListings final : public NearPart {
 public:
  explicit NearListings(NearSide& side) : side_(side) {}

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;  // Answers
  bool quiet() const override { return waiting_ == 0; }
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  // Counts for names in the listing's tree: changes by this connection, and by others (Watched).
  struct Version {
    std::uint64_t changes = 0, doubts = 0;
  };
  struct Listing {
    MessageId generation{};  // the request that began it, or restarted it
    std::uint8_t info_class = 0;
    Version seen;            // when it was begun, or restarted
    bool at_server = false;  // its beginning was requested by the client, and is not answered yet
    bool active = false;     // entries after its beginning will arrive, or have arrived, as Answers
    bool afresh = false;     // the far half has restarted the listing at the server
    bool given_up = false;   // the client's queries are sent to the server from now on
    bool asked = false;      // by a separate request, for which the owner of the listing was decided
    // Entries that the server has sent to the client itself: in the compound that opened the directory.
    std::uint64_t told_before = 0;
    std::uint64_t served = 0;  // entries that the client has received
    FetchedListing fetched;
    std::deque<Message> waiting;  // the client's queries, in order
  };
  void restart(Listing& listing, MessageId by, std::uint8_t info_class, const Version& seen);

  Taken compound(TimePoint now, const Message& message);
  void begin_with_open(const Message& message);
  bool begun_with_open(const OpenKey& key, const Pending& request,
                       const std::optional<BufferResponse>& response);
  Version version_of(const OpenKey& key) const;
  bool is_stale(TimePoint now, const OpenKey& key, const Listing& listing) const;
  void wait(Listing& listing, const Message& message);
  void waits_no_more(Listing& listing);
  void advance(TimePoint now, const OpenKey& key);
  bool begin(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
             const QueryDirectoryRequest& request);
  void begin_afresh(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
                    const QueryDirectoryRequest& request);
  bool serve(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
             const QueryDirectoryRequest& request);
  void answer(TimePoint now, const Listing& listing, const Message& request, Status status, Bytes entries);
  void told(Listing& listing, const Pending& request, const Slice& entries);

  // Changes by other clients may be this old, plus the line's delay, when the client receives the entries.
  static constexpr std::chrono::seconds kLife{10};
  static constexpr std::uint64_t kMostRepeated = 1 << 16;  // entries: the far half remembers no more

  NearSide& side_;
  // Limit of waiting queries of one connection: further ones are sent to the server.
  static constexpr std::size_t kMostWaiting = 256;
  // Limit of entries that the far half has sent beyond its window.
  static constexpr std::size_t kMostQueuedBytes = 16 << 20;

  std::unordered_map<OpenKey, Listing, OpenKeyHash> listings_;
  // A compound opens a directory and lists it: its response shows to which open the listing belongs.
  KeyedMap<MessageId, Listing> beginning_;
  NameChanges name_changes_;
  std::size_t waiting_ = 0;  // number of queries
  std::size_t held_bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
