// SPDX-License-Identifier: Apache-2.0
// The state of an SMB2 connection, derived by both halves from passing requests and responses: the
// negotiation (negotiated.h), sessions (sessions.h), trees (trees.h), unanswered requests
// (pending_requests.h), open files with their oplocks and leases (open_table.h). Records only granted
// requests; decides nothing.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/smb/smb2/changes.h"
#include "proxy/modules/smb/smb2/message.h"
#include "proxy/modules/smb/smb2/negotiated.h"
#include "proxy/modules/smb/smb2/open_table.h"
#include "proxy/modules/smb/smb2/pending_requests.h"
#include "proxy/modules/smb/smb2/sessions.h"
#include "proxy/modules/smb/smb2/trees.h"

namespace longhaul::smb::smb2 {

class Chain;
struct RequestEffects;

class Connection {
 public:
  // A request of the client, or one that is about to be answered on its behalf (then answered_here()
  // follows).
  Changes on_request(const Message& message);

  // A message of the server. Elements that answer no request are ignored. After this call pending(id) of
  // finally answered requests is null; `answered` has them.
  struct Answered {
    const Element* element = nullptr;
    Pending request;  // of an interim response only its ids
    bool interim = false;
  };
  struct Outcome {
    Changes changes;
    std::vector<Answered> answered;
    std::vector<std::unique_ptr<Open>> closed;  // stores what Change::closed points to
  };
  Outcome on_response(const Message& message);
  // The near half answered this request itself; a CLOSE answered here closes the file.
  Outcome answered_here(MessageId id);

  // Returns nullopt if the frame is encrypted, compressed or cannot be parsed: it passes, and from then on
  // the connection is not changed.
  std::optional<Message> parse(const Frame& frame);

  // Which of its sessions may be answered, changed or extended. The connection reports its observations to
  // it.
  Sessions& sessions() { return sessions_; }
  const Sessions& sessions() const { return sessions_; }

  const Negotiated& negotiated() const { return negotiated_; }
  const Tree* tree(SessionId session, TreeId tree) const { return trees_.find(session, tree); }
  Open* open(const FileId& file) { return opens_.find(file); }
  Open* open(const OpenKey& key) { return opens_.find(key); }
  const Pending* pending(MessageId id) const { return pending_.find(id); }
  std::size_t pending_count() const { return pending_.size(); }
  // Whether an open shares this lease.
  bool is_shared(const LeaseKey& lease) const { return opens_.is_shared(lease); }
  // Whether an open of that file has been requested and not answered.
  bool being_opened(const FileGroup& file, MessageId except) const;
  FileGroupRef group_of(const FileName& name) { return files_.group_of(name); }
  const FileGroupRef& any_file() const { return files_.any(); }
  // The number of changes made through this connection.
  std::uint64_t changes() const { return files_.any()->count(&FileCounts::changes); }

  const OpenTable::ById& opens() const { return opens_.all(); }
  // Approximate memory of the connection's state.
  std::size_t state_bytes() const;

  // The file was renamed.
  void moved(Open& open, std::u16string to) { opens_.moved(open, std::move(to)); }

  // Further opens are not tracked: requests treat them like unknown opens. The same holds for the caching of
  // those that share a lease with more than kMostSharers others.
  static constexpr std::size_t kMostOpens = OpenTable::kMostOpens, kMostSharers = OpenTable::kMostSharers;
  static constexpr std::size_t kMostSessions = Sessions::kMostSessions, kMostTrees = Trees::kMost;
  // A client with more unanswered requests is not tracked.
  static constexpr std::size_t kMostPending = PendingRequests::kMost;

 private:
  void note(const Message& message, const Element& element, Chain& chain, Changes& changes);
  void note_create(const Element& element, Pending& request, Changes& changes);
  Open* note_file(Pending& request, const Result<FileId>& file, Chain& chain);
  void apply(const RequestEffects& effects, Pending& request, Chain& chain, Changes& changes);
  FileGroupRef file_meant(const Open* open, const Chain& chain);
  void void_file(const FileGroupRef& file, Pending& request, Changes& changes);
  void finish(const Element& element, Pending& request, Outcome& outcome);
  void opened(const Element& element, Pending& request, Outcome& outcome);
  void close(const FileId& file, MessageId by, Outcome& outcome);
  void close_all(SessionId session, std::optional<TreeId> tree, MessageId by, Outcome& outcome);
  void broken(const Element& element, Outcome& outcome);

  Files files_;
  Negotiated negotiated_;
  Sessions sessions_;
  Trees trees_;
  PendingRequests pending_;
  OpenTable opens_;
};

}  // namespace longhaul::smb::smb2
