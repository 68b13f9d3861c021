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
// fetched after it (listings_with_open.h); if it is not (the feature was off), both halves record which
// entries the client received.
#pragma once
#include <unordered_map>

#include "proxy/modules/smb/smb2/client_listing.h"
#include "proxy/modules/smb/smb2/listings_with_open.h"
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
  using Listing = ClientListing;
  using Version = ClientListing::Version;
  void restart(Listing& listing, MessageId by, std::uint8_t info_class, const Version& seen);

  Taken compound(TimePoint now, const Message& message);
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
  NameChanges name_changes_;
  ListingsWithOpen with_open_{side_, name_changes_};
  std::size_t waiting_ = 0;  // number of queries
  std::size_t held_bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
