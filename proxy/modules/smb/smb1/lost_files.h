// SPDX-License-Identifier: Apache-2.0
// Which file an open means in records of lost writes, and how this connection changes such files (like
// smb2/lost_files.h): SMB_COM_DELETE, SMB_COM_RENAME, and files that are deleted when they are closed.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/share_names.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

// What a TREE_CONNECT_ANDX in this message connects to: share_of() its UNC path.
std::optional<std::u16string> share_connected_by(const Message& request);

// A request, the first command of a message, that uses a file as if all its content were there: an open, or a
// rename or link by path of a file that is named without wildcards.
struct Wanted {
  FileName name;
  LostWrites::Use use = LostWrites::Use::attributes;
};
std::optional<Wanted> wanted_by(const Message& message);

class LostFiles {
 public:
  // `lost` outlives this object.
  LostFiles(LostWrites& lost, const LostWrites::Ends& ends) : lost_(lost), ends_(ends) {}

  void on_request(const Message& request);
  void on_reply(const Message& reply);
  void opened(const Open& open, LostWrites::Use use) {
    if (use == LostWrites::Use::replaces) lost_.forget(of(open));
  }
  // Called after any loss at its closing was recorded.
  void closed(const Open& open) {
    if (open.delete_on_close) lost_.forget(of(open));
  }

  // As in smb2/lost_files.h.
  bool is_renaming() const;

  LostWrites::File of(const Open& open) const { return of(open.name); }
  LostWrites::File of(const FileName& name) const {
    return {.ends = ends_, .share = shares_.of(0, name.tid), .path = path_of(name.path)};
  }

 private:
  struct Change {
    FileName name;
    std::optional<FileName> to;  // renamed; else deleted
  };
  static std::optional<Change> change_of(const Message& request);
  static constexpr std::size_t kMostAsked = 64;  // beyond that records stay under the old name

  LostWrites& lost_;
  LostWrites::Ends ends_;
  ShareNames shares_;
  KeyedMap<MessageNumber, Change> asked_;  // without an answer
};

}  // namespace longhaul::smb::smb1
