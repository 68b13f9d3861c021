// SPDX-License-Identifier: Apache-2.0
// The file of an open in records of lost writes, and how this connection changes such files (like
// smb2/lost_files.h): SMB_COM_DELETE, RENAME, NT_RENAME, CREATE, and files that are deleted when they are
// closed.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/share_names.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

// The share that a TREE_CONNECT or TREE_CONNECT_ANDX in this message connects to: share_of() its UNC path.
std::optional<std::u16string> share_connected_by(const Message& request);
// The tree, once it has succeeded.
std::uint16_t tree_connected_by(const Message& reply);

// A request, the first command of a message, that uses a file as if all its content were there: an open, or a
// rename or link by path of a file that is named without wildcards.
struct Wanted {
  FileName name;
  LostWrites::Use use = LostWrites::Use::attributes;
};
std::optional<Wanted> wanted_by(const Message& message);

inline LostWrites::File file_of(const LostWrites::Ends& ends, std::u16string share, const FileName& name) {
  return file_named(ends, std::move(share), name.spelled, name.dfs ? NameForm::dfs : NameForm::plain);
}

class LostFiles final : private OpenNames {
 public:
  // The connection of these files, and `lost`, outlive this object.
  LostFiles(LostWrites& lost, const LostWrites::Ends& ends, Connection& connection)
      : lost_(lost), ends_(ends), connection_(connection) {
    lost_.live().enter_names(ends_, this);
  }
  ~LostFiles() override { lost_.live().leave_names(ends_, this); }
  LostFiles(const LostFiles&) = delete;
  LostFiles& operator=(const LostFiles&) = delete;

  void on_request(const Message& request);
  void on_reply(const Message& reply);
  void opened(const Open& open, LostWrites::Use use) {
    if (use == LostWrites::Use::replaces && !open.unnamed) lost_.forget(of(open));
  }
  // To be called after any loss at its closing was recorded.
  void closed(const Open& open) {
    if (open.delete_on_close && !open.unnamed) lost_.forget(of(open));
  }

  // As in smb2/lost_files.h.
  bool may_be_misnamed() const { return !shares_.knows_all() || lost_.live().is_renaming(ends_); }

  LostWrites::File of(const Open& open) const {
    return open.moved_to.empty() ? of(open.name)
                                 : file_named(ends_, shares_.of(0, open.name.tid), open.moved_to);
  }
  LostWrites::File of(const FileName& name) const { return file_of(ends_, shares_.of(0, name.tid), name); }

 private:
  struct Change {
    FileName name;
    std::optional<FileName> to;  // renamed; nullopt: deleted or truncated
    std::shared_ptr<void> under_way{};  // renamed: LostWrites::begin_rename()
  };
  // OpenNames
  void moved(const LostWrites::File& from, const LostWrites::File& to) override;
  static std::optional<Change> change_of(const Message& request);
  static constexpr std::size_t kMostAsked = 512;  // beyond that, as in smb2/lost_files.h

  LostWrites& lost_;
  LostWrites::Ends ends_;
  Connection& connection_;
  ShareNames shares_;
  KeyedMap<MessageNumber, Change> asked_;  // unanswered requests
  std::shared_ptr<void> untracked_;        // LostWrites::begin_rename(), permanently
};

}  // namespace longhaul::smb::smb1
