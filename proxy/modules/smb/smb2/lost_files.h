// SPDX-License-Identifier: Apache-2.0
// Which file an open means in records of lost writes (lost_writes.h), and how this connection changes such
// files: if one is deleted, emptied or replaced its record ends, and if it is renamed the record follows.
#pragma once
#include <optional>
#include <string>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/share_names.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

LostWrites::Use use_of(const Open& open);
// What a TREE_CONNECT connects to: share_of() its UNC path, of which 2 KiB count.
std::optional<std::u16string> share_connected_by(const Element& request);

class LostFiles {
 public:
  // `lost` outlives this object.
  LostFiles(LostWrites& lost, const LostWrites::Ends& ends) : lost_(lost), ends_(ends) {}

  void on_request(const Message& message);
  // Called before the parts that call of(); on_done() carries out successful changes, after them.
  void on_outcome(const Connection::Outcome& outcome);
  void on_done(Connection& connection, const Connection::Outcome& outcome);

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
