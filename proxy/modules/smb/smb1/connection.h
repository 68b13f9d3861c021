// SPDX-License-Identifier: Apache-2.0
// What both halves know of an SMB1 connection from the passing requests and answers: the negotiated options,
// requests without an answer, open files and their oplocks. Records only what it saw granted; decides
// nothing.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/config/features.h"
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/features.h"
#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/smb1/effects.h"
#include "proxy/modules/smb/smb1/file_name.h"
#include "proxy/modules/smb/smb1/records.h"
#include "proxy/modules/smb/smb1/transactions.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb::smb1 {

MessageNumber number_of(const Header& header);
OpenKey key_of(std::uint16_t uid, std::uint16_t tid, std::uint16_t fid);
std::uint16_t fid_of(const OpenKey& key);

struct Open {
  OpenKey key;
  std::uint64_t serial = 0;  // of this connection, never used twice
  std::uint16_t uid = 0, tid = 0, fid = 0;
  std::uint32_t pid = 0;
  std::uint16_t flags2 = 0;  // of the request that opened it
  FileName name;
  std::u16string moved_to;  // it, or a folder that contains it, was renamed: as records of lost writes name it now
  std::uint64_t end_of_file = 0;             // as the answer had it
  std::uint64_t confirmed_bytes = 0;         // the server has confirmed that the file reached that size
  bool unpromised = false;                   // counted as written without early answers (near_writes.cc)
  bool size_is_known = false;                // OPEN_ANDX tells only 32 bits of it
  bool may_read = false, may_write = false;  // write: at any place, not only at the end
  bool write_through = false;                // or unbuffered
  bool random = false;                       // the client announces random access
  bool delete_on_close = false;
  bool unnamed = false;  // a stream, or named relative to a handle: no record could be about it
  bool changed = false;  // attributes were set through it: its CLOSE may matter
  // WRITEs through it, requested and answered; and of these, those that a FLUSH stood behind that the server
  // has answered with success.
  std::uint64_t writes = 0, flushed_writes = 0;
  bool locked = false;     // byte ranges were locked through it
  bool closing = false;    // its CLOSE is under way
  bool looks = false;      // for attributes only: breaks no oplock and conflicts with no share mode
  bool on_behalf = false;  // we requested its oplock; the client does not know about it
  // A notification reports changes by others, without the oplock (far_watch.h, Watched).
  bool watched = false;
  // What is granted now. A break reduces it as soon as it is seen, before it is acknowledged.
  Oplock oplock = Oplock::none;
  bool break_pending = false;
  // For the far half, in case the near proxy fails (near_settled.h, far_losses.h).
  bool was_write_cached = false;  // ever: its WRITEs may have been promised
  bool settled = false;           // nothing is promised, until a WRITE requested after this is answered
  std::uint32_t times_settled = 0;
  bool failed_promise = false;  // at the far half: the client may not have been told yet

  bool may_cache_reads() const { return oplock != Oplock::none && !break_pending && !locked; }
  bool may_cache_writes() const {
    return (oplock == Oplock::exclusive || oplock == Oplock::batch) && !break_pending && !locked;
  }
  // Others may change it unseen nevertheless: a server breaks oplocks only for requests that reach it as SMB.
  bool is_guarded(const Features& features) const {
    return !on_behalf || watched || features.metadata_relaxed;
  }
  // The server has confirmed this write.
  void confirm(std::uint64_t offset, std::uint32_t length) {
    if (offset <= ~std::uint64_t{0} - length) confirmed_bytes = std::max(confirmed_bytes, offset + length);
  }
  bool may_cache_handle() const { return oplock == Oplock::batch && !break_pending; }
};

// A requested open, and its properties once it is granted.
struct Opening {
  Open open;
  std::uint16_t open_andx_flags = 0;
  bool is_nt_create = false;
  LostWrites::Use use = LostWrites::Use::attributes;
};

// A request without its final answer.
struct Pending {
  Header header;
  bool chained = false;
  Effect effect = Effect::none;
  std::unique_ptr<Opening> opening;
  std::vector<std::uint16_t> closing;   // FIDs that a success closes
  std::optional<std::uint64_t> serial;  // the open that it refers to, if that was known
  std::uint64_t offset = 0;             // WRITE_ANDX alone
  std::uint64_t writes = 0;             // FLUSH: the open's, when it was requested
  bool leaves_tree = false;             // TREE_CONNECT_ANDX that also disconnects its TID
  std::vector<std::uint16_t> dialects;  // NEGOTIATE: the indices of NT LM 0.12
  std::uint16_t function = 0;           // of a transaction
  bool secondaries_due = false;         // the request has several parts: an interim answer comes first
  std::uint32_t answer_bytes = 0;       // received bytes of a transaction's answer
  unsigned answers_due = 1;             // ECHO requests several
};

class Connection {
 public:
  // A request of the client.
  void on_request(const Message& request);
  // An answer of the server. `opened` lies in opens(); `closed` ones have been removed from it.
  struct Answered {
    std::optional<Pending> request;  // none: for an unknown request, or not the last part
    Open* opened = nullptr;
    std::vector<Open> closed;
  };
  Answered on_reply(const Message& reply);
  // A break by the server (a LOCKING_ANDX that is no answer): the open, with its oplock reduced. None:
  // unknown.
  Open* on_break(const Message& request);

  // We answered the request, or it will never be answered: it is no longer pending.
  void answered_here(MessageNumber number) { pending_.erase(number); }
  std::optional<Open> close(const OpenKey& key);

  const Pending* pending(MessageNumber number) const;
  Open* open(const OpenKey& key);
  Open* open_of(std::uint16_t fid);
  Open* open_of_serial(std::uint64_t serial);
  // The open that the first block of a request refers to, if the request comes from its owner.
  Open* open_of(const Message& request);
  using Opens = KeyedMap<std::uint16_t, Open>;
  Opens& opens() { return opens_; }
  // The number of opens tracked at a time: the cost of a message grows with it. Others pass unchanged, like
  // pipes.
  bool has_room_for_opens(std::size_t more) const { return opens_.size() + more <= kMostOpens; }
  std::size_t state_bytes() const { return opens_.size() * kOpenBytes + pending_.size() * kOpenBytes; }

  // As Half::seals() and Half::cannot_open().
  void seals() { is_sealed_ = true; }
  void cannot_open(modules::Reason reason) {
    is_sealed_ = false;
    why_untouchable_ = reason;
  }

  // NT LM 0.12 was negotiated, without signing, or with signatures that end before this half.
  bool is_ready() const { return ready_ && why_untouchable_ == reasons::optimised; }
  modules::Reason why_untouchable() const { return why_untouchable_; }
  std::uint16_t max_mpx() const { return max_mpx_; }
  // The server's local time was this when it answered the NEGOTIATE.
  std::chrono::local_seconds server_time() const { return server_time_; }
  bool large_reads() const { return (capabilities_ & client_capabilities_ & kCapLargeReadX) != 0; }
  // The largest READ that one answer may carry to this client.
  std::uint32_t max_read_bytes() const;
  std::uint32_t max_answer_bytes() const { return client_buffer_; }
  bool is_disk(std::uint16_t tid) const { return disk_trees_.contains(tid); }

 private:
  void on_block(const Message& request, const Block& block, Pending& pending);
  void on_opened(const Message& reply, const Block& block, Pending& request, Answered& answered);
  void on_negotiated(const Message& reply, const Pending& request);
  bool is_last_part(const Message& reply, Pending& request) const;
  template <class Which>
  void close_where(Which&& which, Answered& answered);

  bool ready_ = false;
  bool is_sealed_ = false;
  modules::Reason why_untouchable_ = reasons::optimised;
  std::uint16_t max_mpx_ = 1;
  std::chrono::local_seconds server_time_{};
  std::uint32_t capabilities_ = 0, client_capabilities_ = 0;
  std::uint32_t client_buffer_ = 0;
  static constexpr std::size_t kMostOpens = 256;
  // Approximate memory of one, including its name.
  static constexpr std::size_t kOpenBytes = 1024;

  KeyedMap<MessageNumber, Pending> pending_;
  Opens opens_;  // by FID, which is the connection's
  std::unordered_set<std::uint16_t> disk_trees_;
  std::uint64_t opened_ = 0;
};

}  // namespace longhaul::smb::smb1
