// SPDX-License-Identifier: Apache-2.0
// Which file an open means in records of lost writes (lost_writes.h), and how this connection changes such
// files: if one is deleted, emptied or replaced its record ends, and if it is renamed the record follows.
// Which requests use a file as if all its content were there is said here, too.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/share_names.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

LostWrites::Use use_of(const Open& open);
// What a TREE_CONNECT connects to: share_of() its UNC path, of which 2 KiB count.
std::optional<std::u16string> share_connected_by(const Element& request);

// A SET_INFO that gives the file another name: a program does that to a file that it has finished.
bool gives_name(const Element& request);
// The same of one behind a CREATE, in its compound: of the file that this opens.
bool gives_name_to_opened(std::span<const Element> behind);

// What a message does with a file as if all its content were there.
struct GoesOn {
  LostWrites::File file;
  LostWrites::Use use;
};

// The answer that reports a loss, to a request with the session and tree that it refers to.
Slice loss_error(const Header& request, const Pending& tracked);

class LostFiles {
 public:
  // `lost` outlives this object.
  LostFiles(LostWrites& lost, const LostWrites::Ends& ends) : lost_(lost), ends_(ends) {}

  void on_request(const Message& message);
  // Called before the parts that call of(); on_done() carries out successful changes, after them.
  void on_outcome(const Connection::Outcome& outcome);
  void on_done(Connection& connection, const Connection::Outcome& outcome);

  // Of all its elements, opens for attributes aside: opens, renames and links.
  std::vector<GoesOn> gone_on_with(const Message& message, Connection& connection) const;
  // Files may have other names than these parts know: nothing may be promised that would be recorded.
  bool is_renaming() const;

  LostWrites::File of(const Open& open) const;
  LostWrites::File of(SessionId session, TreeId tree, std::u16string_view path) const;

 private:
  // The effect of a successful SET_INFO.
  struct Change {
    enum class Kind : std::uint8_t { renamed, deletes, keeps, emptied } kind = Kind::emptied;
    std::u16string path;
  };
  static std::optional<Change> change_of(const Element& element);
  static constexpr std::size_t kMostAsked = 64;  // beyond that records stay under the old name

  LostWrites& lost_;
  LostWrites::Ends ends_;
  ShareNames shares_;
  KeyedMap<MessageId, Change> asked_;  // without an answer
};

}  // namespace longhaul::smb::smb2
