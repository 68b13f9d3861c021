// SPDX-License-Identifier: Apache-2.0
// The far side's account of MessageIds and credits at the server ([MS-SMB2] sections 3.2.4.1.2 and 3.3.1.1):
// which id every request has there, the client's and our own. The client's ids are used unchanged while they
// are free; ours come from requests that the near half answered itself (the bank), else from the top of the
// server's grants.
#pragma once
#include <cstdint>
#include <optional>

#include "codecs/interval_set.h"
#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb2/types.h"

namespace longhaul::smb::smb2 {

// Each id below top() is free or used at the server. Some of the free ones were used by the client without
// being sent to the server: the bank. The client may be ahead of top() too, because the near half grants
// credits for requests that it answers: ids used up there (skipped_) move to the bank when the server's
// grants reach them.
class MessageIds {
 public:
  MessageIds() { free_.add({0, 1}); }

  // Ids below it have been granted. Initially only id 0 ([MS-SMB2] 3.3.5.1).
  MessageId top() const { return MessageId{top_}; }
  // The lowest unused id: the server's window starts there.
  MessageId low() const { return MessageId{free_.empty() ? top_ : free_.intervals().front().begin}; }

  // ---- the client's requests
  // Forbidden for signed or encrypted messages.
  enum class Renumber : std::uint8_t { allowed, forbidden };
  enum class Refusal : std::uint8_t {
    none,
    wait,        // none is free: retry after grants, and call burn() meanwhile
    impossible,  // its id was used here and it cannot be renumbered: the connection cannot continue
  };
  struct Forwarded {
    MessageId id{};  // its id at the server; client_id(id) maps it back until finished(id)
    Refusal refusal = Refusal::none;
  };
  Forwarded forward(MessageId client_id, std::uint16_t charge, Renumber renumber);
  // For CANCEL, which takes no id: the id of its target at the server.
  MessageId sent_as(MessageId client_id) const;
  MessageId client_id(MessageId id) const;
  void finished(MessageId id);

  // ---- ids that the client used without sending them to the server
  void bank(MessageId client_id, std::uint16_t charge);

  // ---- our own requests
  // `charge` consecutive ids. From the top only while at least `keep` ids stay free there for the client.
  std::optional<MessageId> take(std::uint16_t charge, std::uint64_t keep);
  bool can_take(std::uint16_t charge, std::uint64_t keep) const { return find(charge, keep).has_value(); }
  // How many credits a request of ours should request, so that the server's window reaches kTargetWindow and
  // stays there.
  std::uint16_t credits_to_ask(std::uint16_t charge) const;
  // Whether a request of the client waits for ids; in_vain: and no response is due that may bring any.
  enum class Waits : std::uint8_t { no, yes, in_vain };
  // Ids that hold back the server's window, or a client's waiting request; to be used for an ECHO. They are
  // the bank's; and the client's own if its request waits and no grants will arrive: the window's low end is
  // far behind, or no response is due. A request of many ids then waits because our own have left free ones
  // only in short runs, or one that is too short: those granted to the ECHO follow each other. A server that
  // grants less than requested gets the last run a limited number of times: then hopeless() is true.
  struct Burn {
    MessageId id{};
    std::uint16_t charge = 0;
  };
  // The ECHO should request as many credits as it has ids, plus those missing for the waiting request:
  // `charge` ids, or, if that must keep its own, all below `end`. More would reduce the client's share:
  // servers limit the total.
  std::uint16_t lacking(MessageId end, std::uint64_t charge) const;
  // At most `most_charge` ids at once: a server without multi-credit uses one for each request.
  std::optional<Burn> burn(Waits waits, std::uint16_t most_charge = kMostBurnCharge);
  bool hopeless() const { return tries_ > kMostTries; }

  // ---- the server
  void granted(std::uint16_t credits);

  std::uint64_t banked() const { return count(bank_); }
  std::uint64_t free_ids() const { return count(free_); }  // the client's and the bank's
  // Whether every id that the client has used is used at the server, and no other.
  bool in_step() const;

  // Whether the ids form more runs than outstanding requests can cause: a client that uses every other id
  // makes each search more expensive. The connection must end.
  bool is_scattered() const {
    return free_.intervals().size() + bank_.intervals().size() + skipped_.intervals().size() > kMostRuns;
  }

  static constexpr std::uint64_t kTargetWindow = 512;
  static constexpr std::uint64_t kMostLag = 2048;
  static constexpr std::uint16_t kMostBurnCharge = 64;
  static constexpr unsigned kMostTries = 32;  // of ECHOs with the last run that bring no more ids than before
  static constexpr std::size_t kMostRuns = 4096;

 private:
  static std::uint64_t count(const IntervalSet& ids);
  bool all_free(Interval ids) const;
  std::optional<MessageId> find(std::uint16_t charge, std::uint64_t keep) const;
  std::optional<MessageId> find_banked(std::uint16_t charge) const;
  void use(Interval ids);
  bool may_use_last_run();

  // IntervalSet has plain numbers, and so has everything that is compared with its runs.
  IntervalSet free_;     // below top_
  IntervalSet bank_;     // a part of free_
  IntervalSet skipped_;  // from top_ on: used up by the client
  std::uint64_t top_ = 1;
  std::uint64_t client_next_ = 0;                     // one more than the highest id that the client used
  std::uint64_t last_run_ = 0;  // the most ids that were left when one was needed, while a request waits
  unsigned tries_ = 0;          // since then
  KeyedMap<MessageId, MessageId> sent_as_;            // client's id -> server's, if they differ
  KeyedMap<MessageId, MessageId> client_id_;          // the reverse
};

}  // namespace longhaul::smb::smb2
