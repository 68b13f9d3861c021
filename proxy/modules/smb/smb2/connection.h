// SPDX-License-Identifier: Apache-2.0
// What both halves know of an SMB2 connection from the passing requests and answers: its dialect, sessions,
// trees, requests without an answer, open files and their oplocks and leases. Records only what it saw
// granted; decides nothing.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/smb2/files.h"
#include "proxy/modules/smb/smb2/records.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb::smb2 {

// A frame with its elements, parsed once. The elements borrow from the frame.
struct Message {
  explicit Message(const Frame& of, Elements parsed) : frame(of), elements(std::move(parsed)) {}
  Frame frame;
  Elements elements;
  bool single() const { return elements.size() == 1; }
  const Element& first() const { return elements.front(); }
  const Header& header() const { return elements.front().header; }
};
Result<Message> parse_message(const Frame& frame);
// The same for keeping: a frame shares the memory of its neighbours, which may be much larger.
Message kept(const Message& message);

struct Session {
  bool expired = false;
  // An ordinary request was signed, or came encrypted: its session may not be answered, changed or extended.
  bool untouchable = false;
};

struct Tree {
  ShareType type = ShareType::disk;
  std::uint32_t flags = 0;
  std::uint32_t capabilities = 0;
};

struct Open {
  OpenKey key;
  FileId file;
  SessionId session = 0;
  TreeId tree = 0;
  FileName name;
  // The path as the client spelled it, with which it can be opened again. Empty: it has no other.
  std::u16string spelled;
  std::u16string moved_to;   // renamed through it: relative to its share
  bool dfs = false;          // `name` may begin with server and share
  bool unnamed = false;      // a stream, or by an id: no record of lost writes could be about it
  FileGroupRef group;        // of `name`; none until the connection knows the open
  std::uint32_t access = 0;  // desired, generic rights mapped; see may_read(), may_write()
  std::uint32_t options = 0;
  std::uint32_t share_access = 0;
  Disposition disposition = Disposition::open;
  bool directory = false;
  bool disk_file = false;    // a plain file of a disk share, no reparse point
  bool durable = false;      // durable, persistent or resilient: granted, or asked of an open handle
  bool reconnected = false;  // its state began on another connection
  bool replayed = false;
  // Its CREATE may be replayed on another connection, until the client has shown that it got the answer.
  // Servers take any request on the handle for that ([MS-SMB2] 3.3.5.9, replay): ours must not come first.
  bool may_be_replayed = false;
  bool on_behalf = false;  // we requested its oplock; the client does not know about it
  bool given_up =
      false;  // the near half no longer uses it for answers, although the server has not broken it
  // A notification reports changes by others, without the oplock (far_watch.h, Watched).
  bool watched = false;
  bool moved = false;             // beside the server: nobody can look at it any more (far half)
  bool locked = false;            // byte ranges were locked through it, or before it was opened: is_locked()
  bool closing = false;           // its CLOSE has been seen
  bool deletes = false;           // closing it deletes the file (lost_files.h)
  bool unpromised = false;        // counted as written without early answers (near_writes.cc)
  std::uint64_t end_of_file = 0;  // as CREATE answered it
  // The server has confirmed that the file reached that size: so its file system supports it.
  std::uint64_t confirmed_bytes = 0;
  std::uint64_t allocation_bytes = 0;
  std::uint32_t file_attributes = 0;
  FileTimes times;

  // What is granted now, as the state of a lease (level II: R; exclusive: RW; batch: RWH). A break reduces it
  // as soon as it is seen, before it is acknowledged.
  std::uint32_t caching = lease_state::none;
  bool break_pending = false;
  std::optional<LeaseKey> lease;
  OplockLevel oplock = OplockLevel::none;  // as granted by the server

  // For the far half, in case the near proxy fails (near_settled.h, far_losses.h).
  bool was_write_cached = false;  // ever: its WRITEs may have been promised
  bool settled = false;           // nothing is promised, until a WRITE requested after this is answered
  std::uint32_t times_settled = 0;
  bool failed_promise = false;  // at the far half: the client may not have been told yet

  std::size_t name_bytes() const {
    return (name.path.size() + spelled.size() + moved_to.size()) * sizeof(char16_t);
  }
  // Byte ranges were locked through it or another open of the same file.
  bool is_locked() const { return locked || (group && group->count(&FileCounts::locks) != 0); }
  bool may_read() const;
  bool may_write() const;
  bool write_through() const;  // or unbuffered: never written behind, never read ahead
  // The server has confirmed this write.
  void confirm(std::uint64_t offset, std::uint32_t length);
};

// A request without its final answer.
struct Pending {
  Command command = Command::echo;
  MessageId id = 0;
  SessionId session = 0;
  TreeId tree = 0;
  FileId file;  // resolved, where the command has one and it is known
  bool in_compound = false;
  bool async = false;  // an interim answer has come
  AsyncId async_id = 0;
  std::uint16_t charge = 1;
  // READ, WRITE
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  // CREATE
  std::unique_ptr<Open> opening;     // completed by its answer
  std::vector<MessageId> followers;  // elements of its compound that refer to its file
  bool closed_in_compound = false;   // its compound also closes the file: not worth reading ahead
  // SET_INFO, QUERY_INFO; the class QUERY_DIRECTORY, too
  InfoType info_type = InfoType::file;
  std::uint8_t info_class = 0;
  bool lists_afresh = false;  // QUERY_DIRECTORY
  std::size_t name_bytes = 0;
  // Of the file, as long as there is no answer.
  Counted opens_file;
  Counted changes_file;
};

// The effects of a message, in the order of its elements.
struct Change {
  enum class Kind : std::uint8_t {
    opened,  // `open`
    closed,  // the server has closed it, or its tree or session is gone; `open` is valid as long as the
             // Outcome
    broken,  // its caching was reduced, or is being reduced
    voided,  // requests: data read before from any open of `file` is void (write, lock, set
             // info, ioctl, truncation); one for each request
  };
  Kind kind;
  Open* open = nullptr;         // not of `voided`
  MessageId by = kUnsolicited;  // the request that did it, or that was answered
  FileGroupRef file;            // of `voided`
};
using Changes = std::vector<Change>;

class Connection {
 public:
  // A request of the client, or one that is about to be answered on its behalf (then answered_here()
  // follows).
  Changes on_request(const Message& message);

  // A message of the server. Elements that answer no request are ignored. After this call pending(id) of
  // finally answered requests is gone; `answered` has them.
  struct Answered {
    const Element* element = nullptr;
    Pending request;  // of an interim answer only its ids
    bool interim = false;
  };
  struct Outcome {
    Changes changes;
    std::vector<Answered> answered;
    std::vector<std::unique_ptr<Open>> closed;  // keeps what Change::closed points to
  };
  Outcome on_response(const Message& message);
  // The near half answered this request itself: a CLOSE answered locally closes.
  Outcome answered_here(MessageId id);

  // Requests of the session also arrive over another connection.
  void bound_elsewhere(SessionId session) { make_untouchable(session, reasons::smb_multichannel); }
  // The server has reported it in an answer on another path.
  void session_expired(SessionId session);

  // This CREATE is sent without the GUID by which the server would recognise it.
  void cannot_be_replayed(MessageId create);

  // None if it is encrypted, compressed or unparsable: it passes, and from then on the connection is not
  // changed.
  std::optional<Message> parse(const Frame& frame);

  // As Half::seals() and Half::cannot_open().
  void seals() { is_sealed_ = true; }
  void cannot_open(modules::Reason reason) {
    is_sealed_ = false;
    leave_alone(reason);
  }
  bool is_sealed() const { return is_sealed_; }

  // A frame was encrypted, or cannot be parsed: this connection passes unchanged from here on.
  void leave_alone(modules::Reason reason);

  Dialect dialect() const { return dialect_; }
  bool multi_credit() const { return multi_credit_; }
  // Both sides have announced that a session may use several connections.
  bool multi_channel() const { return multi_channel_; }
  std::uint32_t max_read_bytes() const { return max_read_bytes_; }
  std::uint32_t max_write_bytes() const { return max_write_bytes_; }
  std::uint32_t max_transact_bytes() const { return max_transact_bytes_; }

  // Signed, encrypted, signing required, bound to another channel, or expired and not yet renewed: passes
  // unchanged.
  bool untouchable(SessionId session) const;
  bool expired(SessionId session) const;
  // Some session of this connection must pass unchanged: only obligations are fulfilled from then on.
  bool any_untouchable() const { return why_untouchable_ != reasons::optimised; }
  modules::Reason why_untouchable() const { return why_untouchable_; }
  // A request may still be answered in the server's place: at most, sessions have expired.
  bool may_be_answered() const {
    return !any_untouchable() || (!all_untouchable_ && !ids_are_fixed_ && !has_unopened_);
  }
  // Messages may be signed or encrypted: none may get another id, and no request of ours may be sent. If the
  // only problem was an unparsable message, ids continue to be kept apart.
  bool ids_are_fixed() const { return ids_are_fixed_; }

  const Tree* tree(SessionId session, TreeId tree) const;
  Open* open(const FileId& file);
  Open* open(const OpenKey& key);
  const Pending* pending(MessageId id) const;
  std::size_t pending_count() const { return pending_.size(); }
  // Whether an open shares this lease.
  bool is_shared(const LeaseKey& lease) const { return leases_.contains(lease); }
  // Whether an open of that file has been requested and not answered.
  bool being_opened(const FileGroup& file, MessageId except) const;
  FileGroupRef group_of(const FileName& name) { return files_.group_of(name); }
  const FileGroupRef& any_file() const { return files_.any(); }
  // Cached data of the file is void, for a reason that no request shows.
  void changed(const Open& open) { open.group->add(&FileCounts::changes); }
  // The same of its attributes alone.
  void doubted(const Open& open) { open.group->add(&FileCounts::doubts); }
  // How many changes were made through this connection.
  std::uint64_t changes() const { return files_.any()->count(&FileCounts::changes); }

  using Opens = std::unordered_map<FileId, std::unique_ptr<Open>, FileIdHash>;
  const Opens& opens() const { return opens_; }
  // Approximate memory of all this.
  std::size_t state_bytes() const;

  // It was renamed.
  void moved(Open& open, std::u16string to);

  // More opens at a time are not tracked: each request treats them like opens that it has never seen. The
  // same holds for the caching of those that share a lease with more than kMostSharers of them.
  static constexpr std::size_t kMostOpens = 1 << 14, kMostSharers = 64;
  static constexpr std::size_t kMostSessions = 1 << 12, kMostTrees = 1 << 14;
  // A server grants some thousands of credits. A client with more requests without an answer is not tracked.
  static constexpr std::size_t kMostPending = 1 << 14;
  // Nothing larger fits a frame (frames.h), whatever a server announces.
  static constexpr std::uint32_t kLargestTransfer = 8 << 20;

 private:
  struct Chain;  // of a compound: inherited by a related element from the one before
  void note(const Element& element, Chain& chain, Changes& changes);
  void note_create(const Element& element, Pending& request, Changes& changes);
  void note_file(Pending& request, const Result<FileId>& file, Chain& chain);
  enum class Alone : bool { no, yes };
  void voids(Pending& request, const Chain& chain, Alone write, Changes& changes);
  void void_file(const FileGroupRef& file, Pending& request, Alone write, Changes& changes);
  void rename(Open& open);
  void put(Pending request);
  Pending take(KeyedMap<MessageId, Pending>::iterator request);
  void leave_tree(SessionId session, std::optional<TreeId> tree);
  void restart_session(SessionId session);
  void finish(const Element& element, Pending request, Outcome& outcome);
  void opened(const Element& element, Pending& request, Outcome& outcome);
  void close(const FileId& file, MessageId by, Outcome& outcome);
  void close_all(SessionId session, std::optional<TreeId> tree, MessageId by, Outcome& outcome);
  void share_lease(Open& open, const Lease& lease);
  void broken(const Element& element, Outcome& outcome);
  void make_untouchable(SessionId session, modules::Reason reason);
  // Why a message arrives signed or encrypted. If the server's keys are there: its session has ended, or
  // never began. Then only its own id must stay, and what is owed for other sessions can still be sent.
  modules::Reason unopened(modules::Reason without_keys) {
    has_unopened_ = true;
    return is_sealed_ ? reasons::smb_session : without_keys;
  }
  void untouchable_since(modules::Reason reason);

  Dialect dialect_ = Dialect::none;
  bool multi_credit_ = false;
  bool multi_channel_ = false, client_has_channels_ = false;
  bool all_untouchable_ = false, ids_are_fixed_ = false;
  bool is_sealed_ = false, has_unopened_ = false;
  std::uint32_t max_read_bytes_ = 64 << 10, max_write_bytes_ = 64 << 10, max_transact_bytes_ = 64 << 10;
  using TreeKey = std::pair<SessionId, TreeId>;
  struct LeaseHash {
    std::size_t operator()(const LeaseKey& key) const;
  };
  Files files_;
  KeyedMap<SessionId, Session> sessions_;
  std::map<TreeKey, Tree> trees_;
  KeyedMap<MessageId, Pending> pending_;
  Opens opens_;
  std::size_t name_bytes_ = 0;  // of opens_, and of what is being opened
  // Its opens, by the scope of a request: a tree or session (`leaving`: it has asked to end it), a session
  // since it was last set up, a lease.
  using FileIds = std::unordered_set<FileId, FileIdHash>;
  struct InTree {
    FileIds staying, leaving;
  };
  std::map<TreeKey, InTree> in_tree_;
  KeyedMap<SessionId, std::vector<FileId>> since_setup_;
  struct Sharers {
    std::vector<FileId> files;  // the first ones
    std::size_t opens = 0;      // all
  };
  std::unordered_map<LeaseKey, Sharers, LeaseHash> leases_;
  modules::Reason why_untouchable_ = reasons::optimised;
};

OpenKey key_of(SessionId session, TreeId tree, const FileId& file);
FileId file_of(const OpenKey& key);
FileName file_name_of(TreeId tree, const CreateRequest& request, const Header& header);
std::u16string spelled_path_of(const CreateRequest& request, const Header& header);
// Its name, all of it, up to the same limit.
std::u16string name_in(const CreateRequest& request);
// An oplock as the state of a lease.
std::uint32_t caching_of(OplockLevel level);

}  // namespace longhaul::smb::smb2
