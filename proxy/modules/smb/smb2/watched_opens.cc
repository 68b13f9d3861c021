// SPDX-License-Identifier: Apache-2.0
// See watched_opens.h.
#include "proxy/modules/smb/smb2/watched_opens.h"

#include <algorithm>

#include "proxy/modules/smb/notify_information.h"

namespace longhaul::smb::smb2 {
namespace {

// Whether it lies in `path`, or is it.
bool is_below(const std::u16string& folder, const std::u16string& path) {
  if (path.empty() || folder.compare(0, path.size(), path) != 0) return path.empty();
  return folder.size() == path.size() || folder[path.size()] == u'\\';
}

}  // namespace

FolderPath folder_path_of(const Open& open) {
  FolderPath folder{open.session, open.tree, open.name.path};
  if (open.directory) return folder;
  const std::size_t last = folder.path.rfind(u'\\');
  folder.path.resize(last == std::u16string::npos ? 0 : last);
  return folder;
}

// ---- folders

std::optional<WatchedOpens::Number> WatchedOpens::folder(const FolderPath& path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? std::nullopt : std::optional(found->second);
}

WatchedOpens::Number WatchedOpens::add_folder(const FolderPath& path) {
  folders_.emplace(++last_, Folder{.path = path});
  by_path_.emplace(path, last_);
  return last_;
}

void WatchedOpens::remove_folder(Number number) {
  const auto found = folders_.find(number);
  by_path_.erase(found->second.path);
  folders_.erase(found);
}

std::optional<WatchedOpens::Number> WatchedOpens::first_folder() const {
  return folders_.empty() ? std::nullopt : std::optional(folders_.begin()->first);
}

// ---- opens

void WatchedOpens::add(Number number, const Open& open) {
  Folder& folder = folders_.at(number);
  ++folder.opens;
  (open.directory ? folder.listings : folder.of_file[open.group.get()]).insert(open.key);
  opens_.emplace(open.key, Place{number, open.directory ? nullptr : open.group});
}

void WatchedOpens::remove(TimePoint now, const OpenKey& open) {
  const auto found = opens_.find(open);
  if (found == opens_.end()) return;
  Folder& folder = folders_.at(found->second.folder);
  folder.listings.erase(open);
  if (const auto of_file = folder.of_file.find(found->second.file.get()); of_file != folder.of_file.end()) {
    of_file->second.erase(open);
    if (of_file->second.empty()) folder.of_file.erase(of_file);
  }
  if (--folder.opens == 0) folder.since = now;
  opens_.erase(found);
}

std::optional<WatchedOpens::Number> WatchedOpens::folder_of(const OpenKey& open) const {
  const auto found = opens_.find(open);
  return found == opens_.end() ? std::nullopt : std::optional(found->second.folder);
}

std::vector<OpenKey> WatchedOpens::opens_in(Number number) const {
  std::vector<OpenKey> all;
  const auto found = folders_.find(number);
  if (found == folders_.end()) return all;
  const Folder& folder = found->second;
  all.assign(folder.listings.begin(), folder.listings.end());
  for (const auto& [file, opens] : folder.of_file) all.insert(all.end(), opens.begin(), opens.end());
  return all;
}

// ---- changes

WatchedOpens::Concerned WatchedOpens::concerned_by(Number number, std::optional<Bytes> names,
                                                   Connection& connection) const {
  Concerned concerned;
  const auto found = folders_.find(number);
  if (found == folders_.end()) return concerned;
  const Folder& folder = found->second;
  const auto entries = names ? std::optional(parse_notify_information(*names)) : std::nullopt;
  if (!entries || !*entries) {
    const auto all = opens_in(number);
    concerned.changed.insert(all.begin(), all.end());
    concerned.removes = true;
    return concerned;
  }
  concerned.changed = folder.listings;
  // If a name may match any file, each change may concern it.
  if (const auto any = folder.of_file.find(connection.any_file().get()); any != folder.of_file.end())
    concerned.changed.insert(any->second.begin(), any->second.end());
  for (const NotifyEntry& entry : **entries) {
    concerned.removes |= entry.action == NotifyAction::removed;
    CreateRequest named;
    named.name = entry.name;
    const FileGroupRef file = connection.group_of(file_name_of(folder.path.tree, named, Header{}));
    const auto opens = folder.of_file.find(file.get());
    if (opens == folder.of_file.end()) continue;
    concerned.changed.insert(opens->second.begin(), opens->second.end());
    if (entry.action == NotifyAction::removed || entry.action == NotifyAction::renamed_from)
      concerned.gone.insert(concerned.gone.end(), opens->second.begin(), opens->second.end());
  }
  return concerned;
}

// ---- folders without opens

std::optional<WatchedOpens::Number> WatchedOpens::unused_folder() const {
  const auto unused = std::ranges::find_if(folders_, [](const auto& each) { return each.second.opens == 0; });
  return unused == folders_.end() ? std::nullopt : std::optional(unused->first);
}

std::vector<WatchedOpens::Number> WatchedOpens::unused_below(const FileName& name) const {
  std::vector<Number> unused;
  for (const auto& [number, folder] : folders_)
    if (folder.opens == 0 && (!name.exact || is_below(folder.path.path, name.path))) unused.push_back(number);
  return unused;
}

std::vector<WatchedOpens::Number> WatchedOpens::expired(TimePoint now) const {
  std::vector<Number> numbers;
  for (const auto& [number, folder] : folders_)
    if (folder.opens == 0 && now >= folder.since + kLinger) numbers.push_back(number);
  return numbers;
}

std::optional<TimePoint> WatchedOpens::next_expiry() const {
  std::optional<TimePoint> first;
  for (const auto& [number, folder] : folders_)
    if (folder.opens == 0 && (!first || folder.since + kLinger < *first)) first = folder.since + kLinger;
  return first;
}

}  // namespace longhaul::smb::smb2
