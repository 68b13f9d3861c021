// SPDX-License-Identifier: Apache-2.0
// What both halves know of an SMB2 connection from the passing requests and answers: its dialect, sessions
// (sessions.h), trees, requests without an answer, open files with their oplocks and leases (open_table.h).
// Records only what it saw granted; decides nothing.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/modules/smb/smb2/message.h"
#include "proxy/modules/smb/smb2/open_table.h"
#include "proxy/modules/smb/smb2/sessions.h"

namespace longhaul::smb::smb2 {

struct Tree {
  ShareType type = ShareType::disk;
  std::uint32_t flags = 0;
  std::uint32_t capabilities = 0;
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

  // This CREATE is sent without the GUID by which the server would recognise it.
  void cannot_be_replayed(MessageId create);

  // None if it is encrypted, compressed or unparsable: it passes, and from then on the connection is not
  // changed.
  std::optional<Message> parse(const Frame& frame);

  // Which of its sessions may be answered, changed or extended. The connection reports what it sees.
  Sessions& sessions() { return sessions_; }
  const Sessions& sessions() const { return sessions_; }

  Dialect dialect() const { return dialect_; }
  bool multi_credit() const { return multi_credit_; }
  // Both sides have announced that a session may use several connections.
  bool multi_channel() const { return multi_channel_; }
  std::uint32_t max_read_bytes() const { return max_read_bytes_; }
  std::uint32_t max_write_bytes() const { return max_write_bytes_; }
  std::uint32_t max_transact_bytes() const { return max_transact_bytes_; }

  const Tree* tree(SessionId session, TreeId tree) const;
  Open* open(const FileId& file) { return opens_.find(file); }
  Open* open(const OpenKey& key) { return opens_.find(key); }
  const Pending* pending(MessageId id) const;
  std::size_t pending_count() const { return pending_.size(); }
  // Whether an open shares this lease.
  bool is_shared(const LeaseKey& lease) const { return opens_.is_shared(lease); }
  // Whether an open of that file has been requested and not answered.
  bool being_opened(const FileGroup& file, MessageId except) const;
  FileGroupRef group_of(const FileName& name) { return files_.group_of(name); }
  const FileGroupRef& any_file() const { return files_.any(); }
  // How many changes were made through this connection.
  std::uint64_t changes() const { return files_.any()->count(&FileCounts::changes); }

  const OpenTable::ById& opens() const { return opens_.all(); }
  // Approximate memory of all this.
  std::size_t state_bytes() const;

  // It was renamed.
  void moved(Open& open, std::u16string to) { opens_.moved(open, std::move(to)); }

  // More opens at a time are not tracked: each request treats them like opens that it has never seen. The
  // same holds for the caching of those that share a lease with more than kMostSharers of them.
  static constexpr std::size_t kMostOpens = OpenTable::kMostOpens, kMostSharers = OpenTable::kMostSharers;
  static constexpr std::size_t kMostSessions = Sessions::kMostSessions, kMostTrees = 1 << 14;
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
  void finish(const Element& element, Pending request, Outcome& outcome);
  void opened(const Element& element, Pending& request, Outcome& outcome);
  void close(const FileId& file, MessageId by, Outcome& outcome);
  void close_all(SessionId session, std::optional<TreeId> tree, MessageId by, Outcome& outcome);
  void broken(const Element& element, Outcome& outcome);

  Dialect dialect_ = Dialect::none;
  bool multi_credit_ = false;
  bool multi_channel_ = false, client_has_channels_ = false;
  std::uint32_t max_read_bytes_ = 64 << 10, max_write_bytes_ = 64 << 10, max_transact_bytes_ = 64 << 10;
  using TreeKey = std::pair<SessionId, TreeId>;
  Files files_;
  Sessions sessions_;
  std::map<TreeKey, Tree> trees_;
  KeyedMap<MessageId, Pending> pending_;
  OpenTable opens_;
  std::size_t name_bytes_ = 0;  // of what is being opened
};

}  // namespace longhaul::smb::smb2
