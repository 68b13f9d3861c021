// SPDX-License-Identifier: Apache-2.0
// Which opens of the client are in which watched folder, and therefore which of them a reported change
// concerns. Pure; notify_handles.h watches the folders.
#pragma once
#include <chrono>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

struct FolderPath {
  SessionId session = 0;
  TreeId tree = 0;
  std::u16string path;
  auto operator<=>(const FolderPath&) const = default;
};
// The folder of a file; for a directory, its own path.
FolderPath folder_path_of(const Open& open);

class WatchedOpens {
 public:
  using Number = std::uint64_t;
  using Keys = std::unordered_set<OpenKey, OpenKeyHash>;

  // ---- folders
  std::optional<Number> folder(const FolderPath& path) const;
  Number add_folder(const FolderPath& path);  // must not exist yet
  void remove_folder(Number number);          // with no opens in it
  const FolderPath& path_of(Number number) const { return folders_.at(number).path; }
  std::size_t folders() const { return folders_.size(); }
  std::optional<Number> first_folder() const;

  // ---- opens
  void add(Number number, const Open& open);
  void remove(TimePoint now, const OpenKey& open);
  std::optional<Number> folder_of(const OpenKey& open) const;
  std::vector<OpenKey> opens_in(Number number) const;
  std::size_t opens() const { return opens_.size(); }

  // ---- changes
  struct Concerned {
    Keys changed;
    std::vector<OpenKey> gone;  // of these: their new names and folders are unknown
    bool removes = false;       // names, or it is unknown
  };
  // The opens concerned by changes of these names ([MS-FSCC] 2.7.1); all, if `names` is missing or cannot be
  // parsed.
  Concerned concerned_by(Number number, std::optional<Bytes> names, Connection& connection) const;

  // ---- folders without opens
  bool is_unused(Number number) const {
    const auto found = folders_.find(number);
    return found != folders_.end() && found->second.opens == 0;
  }
  std::optional<Number> unused_folder() const;
  // Unused folders that have this name or are below it, or may be.
  std::vector<Number> unused_below(const FileName& name) const;
  // Folders unused for long enough. A client that opens one file after the other needs only one handle of
  // ours.
  std::vector<Number> expired(TimePoint now) const;
  std::optional<TimePoint> next_expiry() const;

  static constexpr std::chrono::seconds kLinger{1};

 private:
  struct Folder {
    FolderPath path;
    TimePoint since{};  // when the last of its opens was closed
    std::size_t opens = 0;
    Keys listings;                                       // of these: the folder itself
    std::unordered_map<const FileGroup*, Keys> of_file;  // the others
  };
  struct Place {
    Number folder = 0;
    FileGroupRef file;  // null: a listing
  };

  std::map<Number, Folder> folders_;
  std::map<FolderPath, Number> by_path_;
  std::unordered_map<OpenKey, Place, OpenKeyHash> opens_;
  Number last_ = 0;
};

}  // namespace longhaul::smb::smb2
