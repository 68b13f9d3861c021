// SPDX-License-Identifier: Apache-2.0
// The open files of a connection, found by id, and by what ends or changes many of them at once: their tree
// or session, a session that is set up again, a shared lease. connection.h decides when that happens.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb2/open.h"

namespace longhaul::smb::smb2 {

class OpenTable {
 public:
  using ById = std::unordered_map<FileId, std::unique_ptr<Open>, FileIdHash>;
  const ById& all() const { return opens_; }
  bool is_full() const { return opens_.size() >= kMostOpens; }
  Open* find(const FileId& file);
  Open* find(const OpenKey& key);

  // Its number must not be in use. It is counted as an open of its group from now on.
  Open& add(std::unique_ptr<Open> open);
  // Returns null if it is not known.
  std::unique_ptr<Open> remove(const FileId& file);

  // The server has granted it this lease; to be called before add(). All opens with its key share one lease,
  // which may have grown with this one.
  void share_lease(Open& open, const Lease& lease);
  // Opens that share the caching of the lease.
  const std::vector<FileId>& sharers(const LeaseKey& lease) const;
  bool is_shared(const LeaseKey& lease) const { return leases_.contains(lease); }
  // The server breaks an oplock or a lease: returns the opens that have less caching from now on.
  std::vector<Open*> broken(const AnyBreak& notification);
  // The server has answered the acknowledgement of a break.
  void acknowledged(const AnyBreak& answer);

  // The client has requested to end the tree, or all trees of the session. Each open is reported once, until
  // its tree or session has ended, or the server has refused the request.
  void leave(SessionId session, std::optional<TreeId> tree);
  std::vector<FileId> in(SessionId session, std::optional<TreeId> tree) const;
  // The session is set up again, perhaps by another user: only the server can judge what was already open
  // (3.3.5.5.3).
  void restarted(SessionId session);
  void ended(SessionId session) { since_setup_.erase(session); }

  // Its name belongs to another group from now on, which counts it.
  void regroup(Open& open, const FileGroupRef& group);
  // The file was renamed.
  void moved(Open& open, std::u16string to);
  std::size_t name_bytes() const { return name_bytes_; }
  // Approximate memory.
  std::size_t held_bytes() const { return opens_.size() * kBytesEach + name_bytes_; }

  // Further opens are not tracked, and further opens that share a lease have no caching.
  static constexpr std::size_t kMostOpens = 1 << 14, kMostSharers = 64;

 private:
  using TreeKey = std::pair<SessionId, TreeId>;
  using FileIds = std::unordered_set<FileId, FileIdHash>;
  struct InTree {
    FileIds staying, leaving;  // `leaving`: leave() was called
  };
  struct Sharers {
    std::vector<FileId> files;  // the first ones
    std::size_t opens = 0;      // all
  };
  struct LeaseHash {
    std::size_t operator()(const LeaseKey& key) const;
  };

  static constexpr std::size_t kBytesEach = 512;  // including its entries in the tables
  ById opens_;
  std::size_t name_bytes_ = 0;
  std::map<TreeKey, InTree> in_tree_;
  KeyedMap<SessionId, std::vector<FileId>> since_setup_;  // opened since then
  std::unordered_map<LeaseKey, Sharers, LeaseHash> leases_;
};

}  // namespace longhaul::smb::smb2
