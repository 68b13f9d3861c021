// SPDX-License-Identifier: Apache-2.0
// The far side's account of MessageIds and credits at the server ([MS-SMB2] sections 3.2.4.1.2 and 3.3.1.1):
// which id every request takes there, the client's and our own. The client's are used as they are while they
// are free; ours come from what the near half answered itself (the bank), else from the top of what the
// server has granted.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "codecs/interval_set.h"

namespace longhaul::smb::smb2 {

class MessageIds {
 public:
  // What the server lets us use: ids below top() that nobody has used. At first only id 0.
  std::uint64_t top() const { return top_; }
  std::uint64_t low() const;  // the lowest id not used yet: servers hold their window open from there

  // ---- the client's requests
  enum class Renumber : std::uint8_t {
    allowed,
    forbidden
  };  // forbidden: signed, encrypted, or part of a chain that is
  struct Sent {
    std::uint64_t id = 0;
  };
  enum class Refusal : std::uint8_t {
    wait,        // the server has not granted so far: try again after grants, and burn() meanwhile
    impossible,  // we used its id and it must not be renumbered: the connection cannot go on
  };
  // The id under which the client's request goes; the server's answer under that id is for client_id(id).
  struct Forwarded {
    std::optional<std::uint64_t> id;
    Refusal refusal = Refusal::wait;
  };
  Forwarded forward(std::uint64_t client_id, std::uint16_t charge, Renumber renumber);
  // For CANCEL, which takes no id: the one under which its target went.
  std::uint64_t sent_as(std::uint64_t client_id) const;
  // Whose answer this is, in the client's numbers.
  std::uint64_t client_id(std::uint64_t id) const;
  // The final answer was given: a renumbered id may be forgotten.
  void finished(std::uint64_t id);

  // ---- ids that the client used and the server never saw
  void bank(std::uint64_t id, std::uint16_t charge);

  // ---- our own requests
  // `charge` ids in a row. From the top only while `keep` ids stay free there for the client.
  std::optional<std::uint64_t> take(std::uint16_t charge, std::uint64_t keep);
  // What a request of ours should ask for, so that the server's window comes to kTargetWindow.
  std::uint16_t credits_to_ask(std::uint16_t charge) const;
  // Ids that lag so far behind that the server may stop granting, or that a waiting client's request needs
  // moved: to be spent on an ECHO. Contiguous.
  struct Burn {
    std::uint64_t id = 0;
    std::uint16_t charge = 0;
  };
  std::optional<Burn> burn(bool client_waits);

  // ---- the server
  void granted(std::uint16_t credits);

  std::uint64_t banked() const;
  std::uint64_t free_ids() const;  // granted and unused, the client's and ours

  static constexpr std::uint64_t kTargetWindow = 512;
  static constexpr std::uint64_t kMostLag = 2048;
  static constexpr std::uint16_t kMostBurnCharge = 16;

 private:
  void use(std::uint64_t id, std::uint16_t charge);

  IntervalSet free_;  // granted, not used at the server
  IntervalSet bank_;  // of these, those that the client has used up
  std::uint64_t top_ = 1;
  std::uint64_t client_next_ = 0;                               // behind the highest id that the client used
  std::unordered_map<std::uint64_t, std::uint64_t> sent_as_;    // client's id -> server's, where they differ
  std::unordered_map<std::uint64_t, std::uint64_t> client_id_;  // and back
};

}  // namespace longhaul::smb::smb2
