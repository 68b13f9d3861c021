// SPDX-License-Identifier: Apache-2.0
// The file of an open in records of lost writes (lost_writes.h), and how this connection changes such files:
// if one is deleted, truncated or replaced its record ends, and if it is renamed the record follows. Also
// determines which requests use a file as if all its content were there.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/share_names.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

LostWrites::Use use_of(const Open& open);
// The share of a TREE_CONNECT: share_of() its UNC path, of which 2 KiB are used.
std::optional<std::u16string> share_connected_by(const Element& request);

// A SET_INFO that gives the file another name: a program renames a file that it has finished.
bool gives_name(const Element& request);
// The same after a CREATE in its compound: renames the file that this opens.
bool gives_name_to_opened(std::span<const Element> behind);

// The message uses a file as if all its content were there; `below`: with everything in it, if it is a
// folder.
struct GoesOn {
  LostWrites::File file;
  LostWrites::Use use;
  LostWrites::Reach reach = LostWrites::Reach::itself;
};

// The file that a CREATE opens in a share; nullopt if such files have no records.
std::optional<LostWrites::File> file_opened_by(const CreateRequest& request, const Header& header,
                                               const LostWrites::Ends& ends, std::u16string share);

// The response that reports a loss, to a request with the session and tree that it refers to.
Slice loss_error(const Header& request, const Pending& tracked);

class LostFiles final : private OpenNames {
 public:
  // The connection of these files. It and `lost` outlive this object.
  using ConnectionOf = std::function<Connection&()>;
  LostFiles(LostWrites& lost, const LostWrites::Ends& ends, ConnectionOf connection)
      : lost_(lost), ends_(ends), connection_(std::move(connection)) {
    lost_.live().enter_names(ends_, this);
  }
  ~LostFiles() override { lost_.live().leave_names(ends_, this); }
  LostFiles(const LostFiles&) = delete;
  LostFiles& operator=(const LostFiles&) = delete;

  void on_request(const Message& message);
  // To be called before the parts that call of(); on_done() carries out successful changes, after them.
  void on_outcome(const Connection::Outcome& outcome);
  void on_done(Connection& connection, const Connection::Outcome& outcome);

  // For all its elements, except opens for attributes: opens, renames and links.
  std::vector<GoesOn> gone_on_with(const Message& message, Connection& connection) const;
  // Files of this client may have names that differ from those here: nothing may be promised, because it
  // could be recorded under a wrong name.
  bool may_be_misnamed() const { return !shares_.knows_all() || lost_.live().is_renaming(ends_); }

  LostWrites::File of(const Open& open) const;

 private:
  // The effect of a successful SET_INFO.
  struct Change {
    enum class Kind : std::uint8_t { renamed, deletes, keeps, emptied } kind = Kind::emptied;
    std::u16string path;
    std::shared_ptr<void> under_way{};  // LostWrites::begin_rename(), if renamed
  };
  // OpenNames
  void moved(const LostWrites::File& from, const LostWrites::File& to) override;
  static std::optional<Change> change_of(const Element& element);
  static std::u16string_view name_of(const Open& open);  // the latest name
  // Beyond these limits changes are not tracked, and nothing more is promised to this client.
  static constexpr std::size_t kMostAsked = 512, kMostAskedBytes = 1 << 20;

  LostWrites& lost_;
  LostWrites::Ends ends_;
  ConnectionOf connection_;
  ShareNames shares_;
  KeyedMap<MessageId, Change> asked_;  // unanswered requests
  std::size_t asked_bytes_ = 0;        // of their paths
  std::shared_ptr<void> untracked_;    // LostWrites::begin_rename(), permanently
};

}  // namespace longhaul::smb::smb2
