// SPDX-License-Identifier: Apache-2.0
// The near half's part for files that a client opens again only to query them: while it has the file open
// under a batch oplock or a lease with H, such an open is answered locally, with an id that the server does
// not know. It is another name (an alias) for the open handle: queries through it use that handle; its CLOSE
// is answered locally.
//
// An open for attributes only conflicts with no share mode and breaks no oplock ([MS-FSA] section 2.1.5.1.2),
// so no other client can detect that it is missing at the server. The alias is opened there (MakeReal,
// far_aliases.h) before anything could reveal that: when its handle is closed, when the oplock or lease is
// broken, when the file is about to be deleted, or when a request through it cannot use the other handle.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

// Whether an open with this request changes nothing and needs no information that only the server has. Pure.
bool only_looks(const Header& header, const CreateRequest& request);
// Whether a handle with this access was granted everything in `wanted`.
bool includes(const Open& open, std::uint32_t wanted);

class NearAliases final : public NearPart {
 public:
  explicit NearAliases(NearSide& side) : side_(side) {}

  bool empty() const { return aliases_.empty(); }
  // Rewrites a request of the client before any tracking: a request that names an alias gets the handle of
  // its file, or the alias is opened at the server.
  Message resolved(TimePoint now, Message message);
  // Whether a CLOSE of an alias was answered; tracking is done. To be called before any part.
  Taken close(TimePoint now, const Message& message);

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;  // CREATE
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  struct Known {  // an open at the server that may have aliases
    std::string name;
    TimePoint opened{};
    // Counts at the time of its open: if they differ, the file, or the target of its name, may have changed.
    std::uint64_t changes = 0, renames = 0;
    std::unordered_set<std::uint64_t> aliases;
  };
  struct Alias {
    OpenKey key;  // its own key
    OpenKey behind;
    Slice create;  // the request, which contains only supported fields
  };

  bool is_changed(const Open& open, const Known& known) const;
  const Open* open_behind(TimePoint now, const std::string& name, const CreateRequest& request);
  bool attributes_known(TimePoint now, const Open& open, const Known& known) const;
  Alias* find(const Element& element);
  void make_real(const OpenKey& behind);
  void make_real_all_of(const FileGroup& file);
  void make_real(std::uint64_t number);
  void forget(const OpenKey& behind);

  static constexpr std::size_t kMostAliases = 256, kMostOpening = 1024;
  // Opens with longer names are sent to the server, and so are opens beyond a few of one name.
  static constexpr std::size_t kMostNameBytes = 2048, kMostOfName = 8;

  NearSide& side_;
  KeyedMap<MessageId, std::string> opening_;  // names of unanswered CREATEs
  std::unordered_map<OpenKey, Known, OpenKeyHash> known_;
  std::map<std::string, std::vector<OpenKey>> by_name_;
  KeyedMap<std::uint64_t, Alias> aliases_;  // by number
  std::uint64_t last_number_ = 0;
  std::uint64_t renames_ = 0;   // of everything on the paths of these names
  std::size_t held_bytes_ = 0;  // of names and requests
};

}  // namespace longhaul::smb::smb2
