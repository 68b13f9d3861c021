// SPDX-License-Identifier: Apache-2.0
// The state of an SMB1 connection, derived by both halves from passing requests and responses: the
// negotiation (negotiated.h), unanswered requests, trees, open files and their oplocks (open_table.h).
// Records only granted requests; decides nothing.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb1/effects.h"
#include "proxy/modules/smb/smb1/negotiated.h"
#include "proxy/modules/smb/smb1/open_table.h"
#include "proxy/modules/smb/smb1/opening.h"
#include "proxy/modules/smb/smb1/transactions.h"

namespace longhaul::smb::smb1 {

MessageNumber number_of(const Header& header);

// A request without its final response.
struct Pending {
  Header header;
  bool chained = false;
  Effect effect = Effect::none;
  std::unique_ptr<Opening> opening;
  std::vector<std::uint16_t> closing;   // FIDs that are closed on success
  std::optional<std::uint64_t> serial;  // the open that it refers to, if known
  std::uint64_t offset = 0;             // only WRITE_ANDX
  std::uint64_t writes = 0;             // FLUSH: the open's count at the time of the request
  bool leaves_tree = false;             // a TREE_CONNECT_ANDX that also disconnects its TID
  std::vector<std::uint16_t> dialects;  // NEGOTIATE: the indices of NT LM 0.12
  std::uint16_t function = 0;           // of a transaction
  bool secondaries_due = false;         // the request has several parts: an interim response comes first
  std::uint32_t answer_bytes = 0;       // received bytes of a transaction's response
  unsigned answers_due = 1;             // ECHO requests several
};

class Connection {
 public:
  // A request of the client.
  void on_request(const Message& request);
  // A response of the server. `opened` points into opens(); `closed` ones have been removed from it.
  struct Answered {
    std::optional<Pending> request;  // nullopt for an unknown request, or if this is not the last part
    Open* opened = nullptr;
    std::optional<OpenKey> untracked;  // opened, but one too many here
    std::vector<Open> closed;
  };
  Answered on_reply(const Message& reply);
  // An oplock break by the server (a LOCKING_ANDX that is not a response): returns the open, with its oplock
  // reduced; null if it is unknown.
  Open* on_break(const Message& request);

  // The request was answered here, or will never be answered: it is no longer pending.
  void answered_here(MessageNumber number) { pending_.erase(number); }
  // The CLOSE of this open was answered here.
  std::optional<Open> close(const OpenKey& key) { return opens_.remove(key); }

  const Pending* pending(MessageNumber number) const;
  // Whether an unanswered request closes this file.
  bool closes(std::uint16_t fid) const;
  OpenTable& opens() { return opens_; }
  Open* open(const OpenKey& key) { return opens_.find(key); }
  // The open that the first block of a request refers to, if the request is from its owner.
  Open* open_of(const Message& request);
  bool is_disk(std::uint16_t tid) const { return disk_trees_.contains(tid); }

  Negotiated& negotiated() { return negotiated_; }
  const Negotiated& negotiated() const { return negotiated_; }
  // Whether its messages may be answered, changed and extended.
  bool is_ready() const { return negotiated_.is_ready(); }

  std::size_t state_bytes() const { return (opens_.all().size() + pending_.size()) * kOpenBytes; }

 private:
  void on_block(const Message& request, const Block& block, Pending& pending);
  void on_transaction(const Message& request, const Block& block, Pending& pending);
  void on_opened(const Message& reply, const Block& block, Pending& request, Answered& answered);
  void on_tree_connected(const Message& reply, const Block& block, const Pending& request,
                         Answered& answered);
  bool is_last_part(const Message& reply, Pending& request) const;

  // Approximate memory of an entry, including its name.
  static constexpr std::size_t kOpenBytes = 1024;

  Negotiated negotiated_;
  OpenTable opens_;
  KeyedMap<MessageNumber, Pending> pending_;
  KeyedSet<std::uint16_t> disk_trees_;
};

}  // namespace longhaul::smb::smb1
