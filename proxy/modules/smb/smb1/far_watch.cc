// SPDX-License-Identifier: Apache-2.0
// See far_watch.h.
#include "proxy/modules/smb/smb1/far_watch.h"

#include <algorithm>

#include "proxy/modules/smb/notify_information.h"
#include "proxy/modules/smb/smb1/builders.h"

namespace longhaul::smb::smb1 {

namespace {

std::u16string folder_of(const FileName& name) {
  const std::size_t last = name.spelled.rfind(u'\\');
  return last == std::u16string::npos ? std::u16string{} : name.spelled.substr(0, last);
}

std::u16string last_part(const std::u16string& path) { return path.substr(path.rfind(u'\\') + 1); }

}  // namespace

void FarWatch::opening(const Header& header, const FileName& name) { (void)has_or_opens(header, name); }

bool FarWatch::listing(const OpenKey& search, const Header& header, const FileName& pattern) {
  if (!connection_.is_disk(header.tid) || !has_or_opens(header, pattern)) return false;
  const Number number = by_path_.at(Path{header.uid, header.tid, folder_of(pattern)});
  Folder& folder = folders_.at(number);
  if (folder.failed) return false;
  folder.listings.insert(search);
  listings_.insert_or_assign(search, number);
  return true;
}

bool FarWatch::listens(const OpenKey& search) const {
  const auto found = listings_.find(search);
  return found != listings_.end() && folders_.at(found->second).watches;
}

void FarWatch::listed(const OpenKey& search) {
  const auto found = listings_.extract(search);
  if (found.empty()) return;
  Folder& folder = folders_.at(found.mapped());
  folder.listings.erase(search);
  if (folder.is_unused()) folder.since = now_;
}

// A listing can continue without a watch: then no more of it is fetched ahead.
bool FarWatch::makes_room() {
  if (folders_.size() < kMostFolders) return true;
  auto least = std::find_if(folders_.begin(), folders_.end(),
                            [](const auto& each) { return each.second.is_unused(); });
  if (least == folders_.end())
    least = std::find_if(folders_.begin(), folders_.end(),
                         [](const auto& each) { return each.second.opens.empty(); });
  if (least == folders_.end()) return false;
  release(least);
  return true;
}

// The folder in which `name` lies.
bool FarWatch::has_or_opens(const Header& header, const FileName& name) {
  if (stopped_ || !header.is_unicode()) return false;
  const Path path{header.uid, header.tid, folder_of(name)};
  if (by_path_.contains(path)) return true;
  if (!leg_.has_room() || !makes_room()) return false;
  const Number number = ++last_;
  by_path_.emplace(path, number);
  folders_.emplace(number, Folder{.path = path, .flags2 = header.flags2, .since = now_});
  ++counters_.injected;
  leg_.inject(
      header.uid, header.tid, header.flags2, std::nullopt,
      [&](const Ids& ids) { return open_directory_request(ids, std::get<2>(path)); },
      [this, number, uid = header.uid, tid = header.tid, flags2 = header.flags2](const Message& answer) {
        const auto opened = parse_nt_create_reply(answer.first());
        const bool good = answer.header.status == 0 && opened;
        const auto found = folders_.find(number);
        if (found == folders_.end()) {
          if (good) {
            leg_.inject(
                uid, tid, flags2, std::nullopt,
                [&](const Ids& ids) { return close_request(ids, opened->fid); },
                [](const Message&) { return ServerLeg::Parts::last; });
          }
        } else if (good) {
          found->second.fid = opened->fid;
          listen(number, found->second);
        } else {
          fail(found->second);
        }
        return ServerLeg::Parts::last;
      });
  return true;
}

void FarWatch::listen(Number number, Folder& folder) {
  folder.listens_at.reset();
  folder.watches = true;
  ++counters_.injected;
  leg_.listen(
      std::get<0>(folder.path), std::get<1>(folder.path), folder.flags2,
      [&](const Ids& ids) { return notify_change_request(ids, *folder.fid, kNotifyFilter, kNotifyBytes); },
      [this, number](const Message& answer) {
        told(number, answer);
        return ServerLeg::Parts::last;
      });
}

void FarWatch::told(Number number, const Message& answer) {
  constexpr std::uint32_t kEnumDir = 0x0000010C;  // more than the server remembers
  const auto found = folders_.find(number);
  if (found == folders_.end()) return;
  Folder& folder = found->second;
  const auto part = parse_transaction(answer, answer.first());
  const bool all = answer.header.status == kEnumDir;
  if (!all && (answer.header.status != 0 || !part || !part->is_whole())) return fail(folder);
  const auto entries = all || part->parameters.empty()
                           ? Result<std::vector<NotifyEntry>>(Error::malformed_record)
                           : parse_notify_information(part->parameters);
  std::map<std::u16string, bool> names;  // whether it now names another file, or none
  for (std::size_t i = 0; entries && i < entries->size(); ++i) {
    const NotifyEntry& entry = (*entries)[i];
    const bool goes = entry.action == NotifyAction::removed || entry.action == NotifyAction::renamed_from;
    bool& gone = names[file_name(0, entry.name, /*unicode=*/true).path];
    gone = gone || goes;
  }
  std::vector<OpenKey> changed, gone;
  for (const auto& [key, name] : folder.opens) {
    const auto meant = names.find(last_part(name.path));
    if (!entries || !name.exact || meant != names.end()) changed.push_back(key);
    if (meant != names.end() && meant->second) gone.push_back(key);
  }
  folder.listens_at = now_ + kRest;
  counters_.changes_noticed += folder.listings.size();
  void_listings(folder);
  for (const OpenKey& key : changed) {
    ++counters_.changes_noticed;
    changed_(key);
  }
  for (const OpenKey& key : gone) {
    set_watched(key, false);
    leave(key);
  }
}

void FarWatch::fail(Folder& folder) {
  folder.watches = false;
  folder.failed = true;
  folder.listens_at.reset();
  for (const auto& [key, name] : folder.opens) set_watched(key, false);
  void_listings(folder);
}

void FarWatch::void_listings(Folder& folder) {
  for (const OpenKey& key : std::exchange(folder.listings, {})) {
    listings_.erase(key);
    listing_void_(key);
  }
  if (folder.is_unused()) folder.since = now_;
}

void FarWatch::set_watched(const OpenKey& key, bool watched) {
  Open* open = connection_.open(key);
  if (!open || open->watched == watched) return;
  open->watched = watched;
  if (watched) times_.add(now_, *open);
  if (!watched && open->on_behalf) times_.remove(key);
  out_.tell(Watched{key, watched});
  if (!watched) changed_(key);
}

// Under the client's own oplock data is cached whether the folder can be watched or not.
void FarWatch::opened(TimePoint now, Open& open) {
  now_ = now;
  if (!open.on_behalf && !stopped_) times_.add(now, open);
  const auto found = by_path_.find(Path{open.uid, open.tid, folder_of(open.name)});
  if (found == by_path_.end()) return;
  Folder& folder = folders_.at(found->second);
  folder.opens.insert_or_assign(open.key, open.name);
  opens_.insert_or_assign(open.key, found->second);
  if (folder.watches) set_watched(open.key, true);
}

void FarWatch::closed(TimePoint now, const OpenKey& key) {
  now_ = now;
  times_.remove(key);
  leave(key);
}

void FarWatch::leave(const OpenKey& key) {
  const auto found = opens_.extract(key);
  if (found.empty()) return;
  Folder& folder = folders_.at(found.mapped());
  folder.opens.erase(key);
  if (folder.is_unused()) folder.since = now_;
}

void FarWatch::before(TimePoint now, const Message& message) {
  now_ = now;
  if (folders_.empty()) return;
  switch (message.header.command) {
    case Command::session_setup_andx:
    case Command::tree_disconnect:
    case Command::logoff_andx:
    case Command::process_exit:
      return release_all();
    case Command::nt_create_andx: {
      const auto create = parse_nt_create_request(message.first(), message.header);
      constexpr std::uint32_t kAllShared = 7;
      if (create && !(create->access & (kDelete | kMaximumAllowed | kGenericAll)) &&
          !(create->options & kOptionDeleteOnClose) && create->share == kAllShared)
        return;
      break;
    }
    case Command::rename:
    case Command::delete_directory:
    case Command::nt_rename:
      break;
    case Command::trans2: {
      const auto part = parse_transaction(message, message.first());
      const auto function = part ? static_cast<Trans2>(part->function) : Trans2::set_path_information;
      if (function != Trans2::set_path_information && function != Trans2::set_file_information) return;
      break;
    }
    default:
      if (is_raw(message)) release_all();
      return;
  }
  for (auto each = folders_.begin(); each != folders_.end();) {
    const auto folder = each++;
    if (folder->second.opens.empty()) release(folder);
  }
}

void FarWatch::release(Folders::iterator found) {
  Folder& folder = found->second;
  for (const auto& [key, name] : folder.opens) {
    set_watched(key, false);
    opens_.erase(key);
  }
  void_listings(folder);
  if (folder.fid) {
    ++counters_.injected;
    leg_.inject(
        std::get<0>(folder.path), std::get<1>(folder.path), folder.flags2, std::nullopt,
        [&](const Ids& ids) { return close_request(ids, *folder.fid); },
        [](const Message&) { return ServerLeg::Parts::last; });
  }
  by_path_.erase(folder.path);
  folders_.erase(found);
}

void FarWatch::release_all() {
  while (!folders_.empty()) release(folders_.begin());
}

void FarWatch::on_timeout(TimePoint now) {
  now_ = now;
  times_.on_timeout(now);
  for (auto each = folders_.begin(); each != folders_.end();) {
    const auto found = each++;
    Folder& folder = found->second;
    if (folder.is_unused() && now >= folder.since + kLinger) {
      release(found);
    } else if (folder.listens_at && now >= *folder.listens_at) {
      if (leg_.raw().under_way() || stopped_) {
        folder.listens_at = now + kRest;
      } else {
        listen(found->first, folder);
      }
    }
  }
}

std::optional<TimePoint> FarWatch::next_timeout() const {
  std::optional<TimePoint> first = times_.next_timeout();
  const auto at = [&first](TimePoint time) {
    if (!first || time < *first) first = time;
  };
  for (const auto& [number, folder] : folders_) {
    if (folder.is_unused()) at(folder.since + kLinger);
    if (folder.listens_at) at(*folder.listens_at);
  }
  return first;
}

}  // namespace longhaul::smb::smb1
