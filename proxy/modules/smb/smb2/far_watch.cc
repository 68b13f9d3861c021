// SPDX-License-Identifier: Apache-2.0
// See far_watch.h.
#include "proxy/modules/smb/smb2/far_watch.h"

namespace longhaul::smb::smb2 {

// ---- opens

Watching FarWatch::watch(TimePoint now, Open& open) {
  used(now, open);
  if (open.watched) return Watching::now;
  if (const auto known = opens_.folder_of(open.key))
    return handles_.has_failed(*known) ? Watching::never : Watching::later;
  if (handles_.has_ended() || opens_.opens() >= kMostOpens || side_.connection().sessions().any_untouchable())
    return Watching::never;
  const FolderPath path = folder_path_of(open);
  std::optional<Number> folder = opens_.folder(path);
  const bool is_new = !folder;
  if (is_new) {
    if (opens_.folders() >= kMostFolders) {
      const auto unused = opens_.unused_folder();
      if (!unused) return Watching::never;
      release(now, *unused);
    }
    folder = opens_.add_folder(path);
  }
  opens_.add(*folder, open);
  if (handles_.watches(*folder)) {
    open.watched = true;
    used(now, open);
    side_.out().tell(Watched{open.key, true});
    return Watching::now;
  }
  if (is_new) handles_.open(now, *folder, path);
  return handles_.has_failed(*folder) ? Watching::never : Watching::later;
}

// Under the client's own oplock data is cached whether the folder can be watched or not.
void FarWatch::used(TimePoint now, const Open& open) {
  const bool own = (open.caching & lease_state::read) && !open.on_behalf && !open.directory;
  if (open.watched || own) times_.add(now, open);
}

void FarWatch::forget(TimePoint now, const OpenKey& key) {
  times_.remove(key);
  opens_.remove(now, key);
}

void FarWatch::after_response(TimePoint now, const Connection::Outcome& outcome) {
  if (side_.surroundings().features.metadata_relaxed) return;
  // Also under the client's own oplock: it may request one, and still read from the server.
  for (const Change& change : outcome.changes)
    if (change.kind == Change::Kind::opened && change.open->caching & lease_state::read &&
        !change.open->directory)
      (void)watch(now, *change.open);
}

void FarWatch::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes)
    if (change.kind == Change::Kind::closed) forget(now, change.open->key);
}

// A handle of ours in a folder prevents others from moving it, or from opening it exclusively. If the client
// has a file open there as well, that has the same effect.
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
        if (harmless) break;
        for (const Number folder : opens_.unused_below(opening.name)) release(now, folder);
        break;
      }
      default:
        break;
    }
  }
}

// ---- changes

void FarWatch::tell(TimePoint now, const OpenKey& key, bool watched) {
  Open* open = side_.connection().open(key);
  if (!open) return;
  if (open->watched != watched) side_.out().tell(Watched{key, watched});
  open->watched = watched;
  if (watched) used(now, *open);
  side_.on_watched(now, *open);
}

void FarWatch::tell_all(TimePoint now, Number folder, bool watched) {
  for (const OpenKey& key : opens_.opens_in(folder)) tell(now, key, watched);
}

void FarWatch::changed(TimePoint now, Number folder, std::optional<Bytes> names) {
  const WatchedOpens::Concerned concerned = opens_.concerned_by(folder, names, side_.connection());
  for (const OpenKey& key : concerned.changed) notice(now, key);
  for (const OpenKey& key : concerned.gone) gone(now, key);
  // A client that removes files may delete their folder next. The server could not report that before the
  // next CHANGE_NOTIFY, and our handle would leave the folder there, with its deletion pending.
  if (concerned.removes && opens_.is_unused(folder)) release(now, folder);
}

void FarWatch::gone(TimePoint now, const OpenKey& key) {
  if (Open* open = side_.connection().open(key)) open->moved = true;
  tell(now, key, false);
  forget(now, key);
}

void FarWatch::notice(TimePoint now, const OpenKey& key) {
  if (drop_kept(now, key)) ++side_.counters().changes_noticed;
}

// None of its cached data may be used any more. Returns false if there is none.
bool FarWatch::drop_kept(TimePoint now, const OpenKey& key) {
  Open* open = side_.connection().open(key);
  if (!open || (!open->watched && (open->on_behalf || open->directory))) return false;
  side_.out().tell(Watched{key, true});
  // Attributes kept under the client's own oplock are dropped by the end of a watch.
  if (!open->watched) side_.out().tell(Watched{key, false});
  side_.drop(now, *open);
  side_.on_noticed(now, *open);
  return true;
}

// ---- ends

void FarWatch::release(TimePoint now, Number folder) {
  handles_.stop(folder);  // for the next client
  for (const OpenKey& key : opens_.opens_in(folder)) {
    tell(now, key, false);
    forget(now, key);
  }
  handles_.close(now, folder);
  opens_.remove_folder(folder);
}

void FarWatch::release_all(TimePoint now) {
  while (const auto folder = opens_.first_folder()) release(now, *folder);
}

// Answered by the near half: the following data is read ahead.
Taken FarWatch::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  const auto* read = std::get_if<Used>(&message);
  const Open* open = read ? side_.connection().open(read->open) : nullptr;
  if (open && !side_.surroundings().features.metadata_relaxed) used(now, *open);
  return Taken::no;
}

void FarWatch::on_ids_freed(TimePoint now) {
  handles_.send_closes(now);
  times_.on_ids_freed(now);
  handles_.on_ids_freed(now);
}

void FarWatch::on_timeout(TimePoint now) {
  times_.on_timeout(now);
  for (const Number folder : opens_.expired(now)) release(now, folder);
  handles_.on_timeout(now);
}

std::optional<TimePoint> FarWatch::next_timeout() const {
  std::optional<TimePoint> first = times_.next_timeout();
  for (const auto& at : {opens_.next_expiry(), handles_.next_timeout()})
    if (at && (!first || *at < *first)) first = at;
  return first;
}

}  // namespace longhaul::smb::smb2
