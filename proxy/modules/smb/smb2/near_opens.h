// SPDX-License-Identifier: Apache-2.0
// The near half's part for opens made ahead: stores the far half's offers (an open file, and what is known of
// it) until the client sends exactly that request, and then answers it. far_opens.h decides which files are
// opened, and for how long.
//
// An offer is used only while no CREATE that may name the same file, and no request that may make the name
// refer to another file, is on its way to the server: when the far half receives such a request it withdraws
// its offers without waiting for a confirmation, and no client may have received one meanwhile.
//
// An offer for a look (look.h) is of a file that was opened and queried ahead, but that the client will not
// get: its look is answered, and the far half closes the file.
#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "proxy/modules/ahead/ahead_cache.h"
#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/plain_open.h"

namespace longhaul::smb::smb2 {

class NearOpens final : public NearPart {
 public:
  // `account`: the bytes that all flows of this site store ahead.
  NearOpens(NearSide& side, std::shared_ptr<AheadAccount> account)
      : side_(side), account_(std::move(account)) {}
  ~NearOpens() override;
  NearOpens(const NearOpens&) = delete;
  NearOpens& operator=(const NearOpens&) = delete;

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  // Takes the response to a CREATE for which the far half used one of its opens: known values follow.
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  // Offer and Revoke; and messages about opens that no client has received.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;

  // If `nothing`: the far half may withdraw offers without our confirmation, so no client gets them.
  void offer_nothing(bool nothing) { nothing_ = nothing; }
  void give_up_all();
  std::size_t held_bytes() const { return state_bytes_; }

 private:
  using Known = std::vector<std::pair<TwinMessage, Slice>>;
  struct Offered {
    OpenKey open;
    std::string request;
    std::vector<Slice> questions;
    Slice response;  // without the header
    Known known;     // about the open, in order
    std::uint64_t bytes = 0;
    std::size_t state_bytes = 0;  // additional memory
    TimePoint came{};
    // Given up here, while a CREATE that crossed the offer may have given the open to the client at the far
    // side. Until the far half reports which, the number of pushes and the last Drop are kept: data that is
    // pushed later depends on them. Also set when a look was answered from it, for the messages about the
    // open that the far half sent before it knew that.
    bool given_up = false;
    std::uint64_t pushes = 0;
    std::optional<Drop> dropped;
  };
  using Offers = std::map<std::uint64_t, Offered>;

  Taken look(TimePoint now, const Message& message);
  std::optional<Offers::iterator> offer_for(const Message& message, const PlainOpen& asked);
  void offered(TimePoint now, const Offer& offer, const Slice& response);
  Taken keep(const OpenKey& open, const TwinMessage& message, const Slice& attached);
  Offered take(Offers::iterator offer);
  void give_up(Offers::iterator offer);
  void keep_for_revoke(Offers::iterator offer);
  void release(Offered& offer);
  void tell_known(TimePoint now, const Offered& offer);

  // More than the far half ever offers at a time; the bytes are those that it may have sent ahead of a flow.
  static constexpr std::size_t kMostOffers = 512;
  static constexpr std::uint64_t kMostBytes = 64 << 20;
  static constexpr std::size_t kMostKnown = 1024;  // messages about one offer

  NearSide& side_;
  std::shared_ptr<AheadAccount> account_;
  Offers offers_;                                    // by number
  std::map<std::string, std::uint64_t> by_request_;  // session, tree and request -> number
  std::map<OpenKey, std::uint64_t> by_open_;
  KeyedSet<MessageId> unsettling_;  // requests in flight
  std::uint64_t held_bytes_ = 0;
  std::size_t state_bytes_ = 0;
  bool nothing_ = false;
};

}  // namespace longhaul::smb::smb2
