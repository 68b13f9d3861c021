// SPDX-License-Identifier: Apache-2.0
// The far side's account of MessageIds and credits at the server ([MS-SMB2] sections 3.2.4.1.2 and 3.3.1.1):
// which id every request takes there, the client's and our own. The client's are used as they are while they
// are free; ours come from what the near half answered itself (the bank), else from the top of what the
// server has granted.
#pragma once
#include <cstdint>
#include <optional>

#include "codecs/interval_set.h"
#include "codecs/keyed_hash.h"

namespace longhaul::smb::smb2 {

// Each id below top() is free or used at the server. Of the free ones, some were used up by the client
// without the server seeing them: the bank. The client may be ahead of top() too, because the near half
// grants what it answers: what it used up there (skipped_) becomes the bank's when the server grants so far.
class MessageIds {
 public:
  MessageIds() { free_.add({0, 1}); }

  // Ids below it have been granted. At first only id 0 ([MS-SMB2] 3.3.5.1).
  std::uint64_t top() const { return top_; }
  // The lowest id that is not used: servers hold their window open from there.
  std::uint64_t low() const { return free_.empty() ? top_ : free_.intervals().front().begin; }

  // ---- the client's requests
  // Forbidden for what is signed or encrypted.
  enum class Renumber : std::uint8_t { allowed, forbidden };
  enum class Refusal : std::uint8_t {
    none,
    wait,        // nothing is free: try again after grants, and burn() meanwhile
    impossible,  // we used its id and it must not be renumbered: the connection cannot go on
  };
  struct Forwarded {
    std::uint64_t id = 0;  // under which it goes to the server; client_id(id) leads back until finished(id)
    Refusal refusal = Refusal::none;
  };
  Forwarded forward(std::uint64_t client_id, std::uint16_t charge, Renumber renumber);
  // For CANCEL, which takes no id: the one under which its target went.
  std::uint64_t sent_as(std::uint64_t client_id) const;
  std::uint64_t client_id(std::uint64_t id) const;
  void finished(std::uint64_t id);

  // ---- ids that the client used and the server never saw
  void bank(std::uint64_t client_id, std::uint16_t charge);

  // ---- our own requests
  // `charge` ids in a row. From the top only while at least `keep` ids stay free there for the client.
  std::optional<std::uint64_t> take(std::uint16_t charge, std::uint64_t keep);
  bool can_take(std::uint16_t charge, std::uint64_t keep) const { return find(charge, keep).has_value(); }
  // What a request of ours should ask for, so that the server's window comes to kTargetWindow and stays
  // there.
  std::uint16_t credits_to_ask(std::uint16_t charge) const;
  // Ids that hold the server's window back, or a client's request that waits: for an ECHO. The bank's; and
  // the client's own where its request waits while the window's low end is far behind, for then no grants
  // will come.
  struct Burn {
    std::uint64_t id = 0;
    std::uint16_t charge = 0;
  };
  // It should ask for as many credits as it has ids, and for what the request that waits lacks: `charge` ids,
  // or, where it must keep its own, all below `end`. More would be kept from the client by us: servers limit
  // the sum.
  std::uint16_t lacking(std::uint64_t end, std::uint64_t charge) const;
  // At most `most_charge` ids at once: a server without multi-credit takes one for each request.
  std::optional<Burn> burn(bool client_waits, std::uint16_t most_charge = kMostBurnCharge);

  // ---- the server
  void granted(std::uint16_t credits);

  std::uint64_t banked() const { return count(bank_); }
  std::uint64_t free_ids() const { return count(free_); }  // the client's and the bank's
  // Nothing is out of its place: every id that the client has used is used at the server, and no other.
  bool in_step() const;

  // The ids lie in more runs than requests under way can leave: who uses every other id makes each look at
  // them cost more. The connection is to end.
  bool is_scattered() const {
    return free_.intervals().size() + bank_.intervals().size() + skipped_.intervals().size() > kMostRuns;
  }

  static constexpr std::uint64_t kTargetWindow = 512;
  static constexpr std::uint64_t kMostLag = 2048;
  static constexpr std::uint16_t kMostBurnCharge = 64;
  static constexpr std::size_t kMostRuns = 4096;

 private:
  static std::uint64_t count(const IntervalSet& ids);
  bool all_free(Interval ids) const;
  std::optional<std::uint64_t> find(std::uint16_t charge, std::uint64_t keep) const;
  std::optional<std::uint64_t> find_banked(std::uint16_t charge) const;
  void use(Interval ids);

  IntervalSet free_;     // below top_
  IntervalSet bank_;     // a part of free_
  IntervalSet skipped_;  // from top_ on: used up by the client
  std::uint64_t top_ = 1;
  std::uint64_t client_next_ = 0;                     // behind the highest id that the client used
  KeyedMap<std::uint64_t, std::uint64_t> sent_as_;    // client's id -> server's, where they differ
  KeyedMap<std::uint64_t, std::uint64_t> client_id_;  // and back
};

}  // namespace longhaul::smb::smb2
