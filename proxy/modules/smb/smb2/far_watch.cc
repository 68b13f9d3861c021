// SPDX-License-Identifier: Apache-2.0
// See far_watch.h.
#include "proxy/modules/smb/smb2/far_watch.h"

#include <algorithm>

#include "proxy/modules/smb/notify_information.h"

namespace longhaul::smb::smb2 {
namespace {

std::u16string folder_of(const Open& open) {
  if (open.directory) return open.name.path;
  const std::size_t last = open.name.path.rfind(u'\\');
  return last == std::u16string::npos ? std::u16string{} : open.name.path.substr(0, last);
}

// It lies in `path`, or is it.
bool is_below(const std::u16string& folder, const std::u16string& path) {
  if (path.empty() || folder.compare(0, path.size(), path) != 0) return path.empty();
  return folder.size() == path.size() || folder[path.size()] == u'\\';
}

}  // namespace

// ---- opens

Watching FarWatch::watch(TimePoint now, Open& open) {
  used(now, open);
  if (open.watched) return Watching::now;
  if (const auto known = opens_.find(open.key); known != opens_.end())
    return folders_.at(known->second.folder).state == Folder::State::failed ? Watching::never
                                                                            : Watching::later;
  if (ended_ || opens_.size() >= kMostOpens || side_.connection().sessions().any_untouchable())
    return Watching::never;
  const auto [entry, is_new] =
      by_path_.try_emplace(Path{open.session, open.tree, folder_of(open)}, last_ + 1);
  if (is_new) {
    if (folders_.size() >= kMostFolders) {
      const auto unused = std::find_if(folders_.begin(), folders_.end(),
                                       [](const auto& each) { return each.second.opens == 0; });
      if (unused == folders_.end()) {
        by_path_.erase(entry);
        return Watching::never;
      }
      release(now, unused);
    }
    folders_.emplace(++last_, Folder{.path = entry->first});
  }
  const Number number = entry->second;
  Folder& folder = folders_.at(number);
  ++folder.opens;
  (open.directory ? folder.listings : folder.of_file[open.group.get()]).insert(open.key);
  opens_.emplace(open.key, Watched{number, open.directory ? nullptr : open.group});
  if (folder.watches) {
    open.watched = true;
    used(now, open);
    side_.out().tell(smb::Watched{open.key, true});
    return Watching::now;
  }
  if (is_new) go_on(now, number);
  return folder.state == Folder::State::failed ? Watching::never : Watching::later;
}

// Under the client's own oplock data are kept whether the folder can be watched or not.
void FarWatch::used(TimePoint now, const Open& open) {
  const bool own = (open.caching & lease_state::read) && !open.on_behalf && !open.directory;
  if (open.watched || own) times_.add(now, open);
}

void FarWatch::forget(TimePoint now, const OpenKey& key) {
  times_.remove(key);
  const auto found = opens_.find(key);
  if (found == opens_.end()) return;
  Folder& folder = folders_.at(found->second.folder);
  folder.listings.erase(key);
  if (const auto of_file = folder.of_file.find(found->second.file.get()); of_file != folder.of_file.end()) {
    of_file->second.erase(key);
    if (of_file->second.empty()) folder.of_file.erase(of_file);
  }
  if (--folder.opens == 0) folder.since = now;
  opens_.erase(found);
}

void FarWatch::after_response(TimePoint now, const Connection::Outcome& outcome) {
  if (side_.surroundings().features.metadata_relaxed) return;
  // Also under the client's own oplock: it may ask for one, and read from the server all the same.
  for (const Change& change : outcome.changes)
    if (change.kind == Change::Kind::opened && change.open->caching & lease_state::read &&
        !change.open->directory)
      (void)watch(now, *change.open);
}

void FarWatch::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes)
    if (change.kind == Change::Kind::closed) forget(now, change.open->key);
}

// A handle of ours in a folder keeps others from moving it, or from opening it exclusively. If the client has
// a file open there as well, it does so anyway.
void FarWatch::before_request(TimePoint now, const Message& message, const Changes&) {
  const bool strict = !side_.surroundings().features.metadata_relaxed;
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    if (strict && request && element.header.command != Command::close)
      if (const Open* open = side_.connection().open(request->file); open) used(now, *open);
    switch (element.header.command) {
      case Command::session_setup:
      case Command::logoff:
      case Command::tree_disconnect:
        return release_all(now);
      case Command::close:
        if (const Open* open = request ? side_.connection().open(request->file) : nullptr)
          forget(now, open->key);
        break;
      case Command::set_info:
        // Afterwards it is elsewhere, or has another name.
        if (const Open* open = request ? side_.connection().open(request->file) : nullptr;
            open && open->watched &&
            (request->info_class == file_info::rename || request->info_class == file_info::rename_ex)) {
          tell(now, open->key, false);
          forget(now, open->key);
        }
        break;
      case Command::create: {
        constexpr std::uint32_t kAllShared = 7;
        if (!request || !request->opening) break;
        const Open& opening = *request->opening;
        const bool harmless =
            !(opening.access & (access::delete_file | access::generic_all | access::maximum_allowed)) &&
            !(opening.options & create_options::delete_on_close) && opening.share_access == kAllShared;
        for (auto each = folders_.begin(); !harmless && each != folders_.end();) {
          const auto folder = each++;
          if (folder->second.opens == 0 &&
              (!opening.name.exact || is_below(std::get<2>(folder->second.path), opening.name.path)))
            release(now, folder);
        }
        break;
      }
      default:
        break;
    }
  }
}

// ---- folders

void FarWatch::go_on(TimePoint now, Number number) {
  const auto found = folders_.find(number);
  if (found == folders_.end() || ended_) return;
  Folder& folder = found->second;
  wanting_ids_.erase(number);
  if (folder.state == Folder::State::to_open) open(number, folder, now);
  if (folder.state == Folder::State::to_listen && now >= folder.due) listen(number, folder, now);
}

void FarWatch::open(Number number, Folder& folder, TimePoint now) {
  const auto& [session, tree, path] = folder.path;
  const Slice name = utf16_of(path);
  const bool sent = side_.inject_awaited(
      now, session, tree,
      [&name](const RequestHead& head) {
        CreateRequest request;
        request.desired_access = access::read_data | access::read_attributes;
        request.share_access = 7;
        request.disposition = Disposition::open;
        request.options = create_options::directory_file;
        request.name = name.bytes();
        return build_create_request(head, request);
      },
      [this, number, of = folder.path](TimePoint then, const Frame&, const Element& answer) {
        const auto created = parse_create_response(answer.bytes);
        const bool good = answer.header.status == Status::success && created;
        const auto found = folders_.find(number);
        if (found == folders_.end()) {
          if (good) close(then, of, created->file);
          return;
        }
        if (!good) return fail(then, number);
        found->second.file = created->file;
        found->second.state = Folder::State::to_listen;
        go_on(then, number);
      });
  if (sent) {
    folder.state = Folder::State::opening;
  } else {
    wanting_ids_.insert(number);
  }
}

void FarWatch::listen(Number number, Folder& folder, TimePoint now) {
  const ChangeNotifyRequest request{
      .output_bytes = kNotifyBytes, .file = folder.file, .filter = kNotifyFilter};
  const bool sent = side_.listen(
      now, std::get<0>(folder.path), std::get<1>(folder.path),
      [request](const RequestHead& head) { return build_change_notify_request(head, request); },
      [this, number](TimePoint then) {
        const auto found = folders_.find(number);
        if (found == folders_.end() || !is_unconfirmed(found->second)) return;
        found->second.watches = true;
        for (const OpenKey& key : all_of(found->second)) tell(then, key, true);
      },
      [this, number](TimePoint then, const Frame&, const Element& answer) { told(then, number, answer); });
  if (sent) {
    folder.state = Folder::State::listening;
    folder.due = now + kPatience;
  } else {
    wanting_ids_.insert(number);
  }
}

void FarWatch::told(TimePoint now, Number number, const Element& answer) {
  const auto found = folders_.find(number);
  if (found == folders_.end()) return;
  Folder& folder = found->second;
  if (folder.state != Folder::State::listening) return;
  const auto response = parse_buffer_response(answer.bytes);
  if (answer.header.status == Status::success && response && !response->buffer.empty()) {
    changed(now, folder, response->buffer);
  } else if (answer.header.status == Status::notify_enum_dir || answer.header.status == Status::success) {
    // More than the server remembers: it may be any file.
    const auto all = all_of(folder);
    changed(now, Keys(all.begin(), all.end()));
  } else {
    return fail(now, number);
  }
  if (const auto still = folders_.find(number); still != folders_.end()) {
    still->second.state = Folder::State::to_listen;
    still->second.due = now + kRest;
    // Changes may have been reported without an interim answer: the server watches all the same.
    if (!std::exchange(still->second.watches, true))
      for (const OpenKey& key : all_of(still->second)) tell(now, key, true);
  }
}

// It cannot be watched, or not any more.
void FarWatch::fail(TimePoint now, Number number) {
  Folder& folder = folders_.at(number);
  if (folder.file != FileId{}) close(now, folder.path, folder.file);
  folder.file = {};
  folder.watches = false;
  folder.state = Folder::State::failed;
  for (const OpenKey& key : all_of(folder)) tell(now, key, false);
}

std::vector<OpenKey> FarWatch::all_of(const Folder& folder) const {
  std::vector<OpenKey> all(folder.listings.begin(), folder.listings.end());
  for (const auto& [file, opens] : folder.of_file) all.insert(all.end(), opens.begin(), opens.end());
  return all;
}

void FarWatch::tell(TimePoint now, const OpenKey& key, bool watched) {
  Open* open = side_.connection().open(key);
  if (!open) return;
  if (open->watched != watched) side_.out().tell(smb::Watched{key, watched});
  open->watched = watched;
  if (watched) used(now, *open);
  side_.on_watched(now, *open);
}

// ---- changes

void FarWatch::changed(TimePoint now, Folder& folder, Bytes names) {
  const auto entries = parse_notify_information(names);
  Keys opens = folder.listings;
  std::vector<OpenKey> gone;
  if (!entries) {
    for (const OpenKey& key : all_of(folder)) opens.insert(key);
  } else {
    // If a name may match any file, each change may concern it.
    if (const auto any = folder.of_file.find(side_.connection().any_file().get());
        any != folder.of_file.end())
      opens.insert(any->second.begin(), any->second.end());
    for (const NotifyEntry& entry : *entries) {
      CreateRequest named;
      named.name = entry.name;
      const FileGroupRef file =
          side_.connection().group_of(file_name_of(std::get<1>(folder.path), named, Header{}));
      const auto found = folder.of_file.find(file.get());
      if (found == folder.of_file.end()) continue;
      opens.insert(found->second.begin(), found->second.end());
      // Its new name and folder are unknown.
      if (entry.action == NotifyAction::removed || entry.action == NotifyAction::renamed_from)
        gone.insert(gone.end(), found->second.begin(), found->second.end());
    }
  }
  changed(now, opens);
  for (const OpenKey& key : gone) this->gone(now, key);
}

void FarWatch::gone(TimePoint now, const OpenKey& key) {
  if (Open* open = side_.connection().open(key)) open->moved = true;
  tell(now, key, false);
  forget(now, key);
}

void FarWatch::changed(TimePoint now, const Keys& opens) {
  for (const OpenKey& key : opens)
    if (drop_kept(now, key)) ++side_.counters().changes_noticed;
}

// Nothing of it that is kept may be used any more. False: nothing is.
bool FarWatch::drop_kept(TimePoint now, const OpenKey& key) {
  Open* open = side_.connection().open(key);
  if (!open || (!open->watched && (open->on_behalf || open->directory))) return false;
  side_.out().tell(smb::Watched{key, true});
  // Attributes kept under the client's own oplock are dropped by the end of a watch.
  if (!open->watched) side_.out().tell(smb::Watched{key, false});
  side_.drop(now, *open);
  side_.on_noticed(now, *open);
  return true;
}

// ---- ends

void FarWatch::release(TimePoint now, Folders::iterator found) {
  Folder& folder = found->second;
  folder.watches = false;
  folder.state = Folder::State::failed;  // for the next client
  for (const OpenKey& key : all_of(folder)) {
    tell(now, key, false);
    forget(now, key);
  }
  if (folder.file != FileId{}) close(now, folder.path, folder.file);
  by_path_.erase(folder.path);
  wanting_ids_.erase(found->first);
  folders_.erase(found);
}

void FarWatch::release_all(TimePoint now) {
  while (!folders_.empty()) release(now, folders_.begin());
}

void FarWatch::close(TimePoint now, const Path& path, const FileId& file) {
  closes_.push_back({.path = path, .file = file, .number = ++last_close_});
  side_.hold_behind(last_close_, FileName{.tree = std::get<1>(path), .path = std::get<2>(path)});
  send_closes(now);
}

// A request that cannot be sent any more must not block others.
void FarWatch::send_closes(TimePoint now) {
  while (!closes_.empty()) {
    const Closing closing = closes_.back();
    const CloseRequest request{.file = closing.file};
    const bool sent = side_.inject_awaited(
        now, std::get<0>(closing.path), std::get<1>(closing.path),
        [request](const RequestHead& head) { return build_close_request(head, request); },
        [this, number = closing.number](TimePoint then, const Frame&, const Element&) {
          side_.let_go(then, number);
        });
    if (!sent && !side_.connection().sessions().any_untouchable() && !ended_) return;
    closes_.pop_back();
    if (sent) continue;
    (void)side_.inject_owed(
        now, std::get<0>(closing.path), std::get<1>(closing.path),
        [request](const RequestHead& head) { return build_close_request(head, request); });
    side_.let_go(now, closing.number);
  }
}

// Answered by the near half: what follows is read ahead.
Taken FarWatch::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  const auto* read = std::get_if<Used>(&message);
  const Open* open = read ? side_.connection().open(read->open) : nullptr;
  if (open && !side_.surroundings().features.metadata_relaxed) used(now, *open);
  return Taken::no;
}

void FarWatch::on_ids_freed(TimePoint now) {
  send_closes(now);
  times_.on_ids_freed(now);
  for (const Number number : std::exchange(wanting_ids_, {})) go_on(now, number);
}

void FarWatch::on_timeout(TimePoint now) {
  times_.on_timeout(now);
  for (auto each = folders_.begin(); each != folders_.end();) {
    const auto folder = each++;
    if (folder->second.opens == 0 && now >= folder->second.since + kLinger) {
      release(now, folder);
    } else if (folder->second.state == Folder::State::to_listen && !wanting_ids_.contains(folder->first)) {
      go_on(now, folder->first);
    } else if (is_unconfirmed(folder->second) && now >= folder->second.due) {
      fail(now, folder->first);
    }
  }
}

std::optional<TimePoint> FarWatch::next_timeout() const {
  std::optional<TimePoint> first = times_.next_timeout();
  const auto at = [&first](TimePoint time) {
    if (!first || time < *first) first = time;
  };
  for (const auto& [number, folder] : folders_) {
    if (folder.opens == 0) at(folder.since + kLinger);
    if (is_unconfirmed(folder) ||
        (folder.state == Folder::State::to_listen && !wanting_ids_.contains(number)))
      at(folder.due);
  }
  return first;
}

}  // namespace longhaul::smb::smb2
