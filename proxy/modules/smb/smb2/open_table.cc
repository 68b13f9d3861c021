// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/open_table.h"

#include <algorithm>

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {

Open* OpenTable::find(const FileId& file) {
  const auto found = opens_.find(file);
  return found == opens_.end() ? nullptr : found->second.get();
}

Open* OpenTable::find(const OpenKey& key) {
  Open* found = find(file_of(key));
  return found && found->key == key ? found : nullptr;
}

Open& OpenTable::add(std::unique_ptr<Open> open) {
  Open& kept = *open;
  kept.group->add(&FileCounts::opens);
  name_bytes_ += kept.name_bytes();
  in_tree_[{kept.session, kept.tree}].staying.insert(kept.file);
  since_setup_[kept.session].push_back(kept.file);
  opens_.insert_or_assign(kept.file, std::move(open));
  return kept;
}

std::unique_ptr<Open> OpenTable::remove(const FileId& file) {
  const auto found = opens_.find(file);
  if (found == opens_.end()) return nullptr;
  std::unique_ptr<Open> removed = std::move(found->second);
  opens_.erase(found);
  Open& open = *removed;
  open.group->remove(&FileCounts::opens);
  name_bytes_ -= open.name_bytes();
  if (const auto tree = in_tree_.find({open.session, open.tree}); tree != in_tree_.end()) {
    tree->second.staying.erase(file);
    tree->second.leaving.erase(file);
    if (tree->second.staying.empty() && tree->second.leaving.empty()) in_tree_.erase(tree);
  }
  if (const auto since = since_setup_.find(open.session);
      since != since_setup_.end() && since->second.size() > 2 * opens_.size() + 64)
    std::erase_if(since->second, [&](const FileId& each) { return !opens_.contains(each); });
  if (const auto sharers = open.lease ? leases_.find(*open.lease) : leases_.end(); sharers != leases_.end()) {
    std::erase(sharers->second.files, file);
    if (--sharers->second.opens == 0) leases_.erase(sharers);
  }
  return removed;
}

void OpenTable::share_lease(Open& open, const Lease& lease) {
  open.lease = lease.key;
  open.break_pending = lease.flags & lease_flags::break_in_progress;
  Sharers& sharers = leases_[lease.key];
  ++sharers.opens;
  if (sharers.files.size() >= kMostSharers) {
    open.caching = lease_state::none;
    return;
  }
  for (const FileId& file : sharers.files) {
    Open* sharer = find(file);
    sharer->caching = open.caching;
    sharer->was_write_cached |= (open.caching & lease_state::write) != 0;
    sharer->break_pending = open.break_pending;
  }
  sharers.files.push_back(open.file);
}

const std::vector<FileId>& OpenTable::sharers(const LeaseKey& lease) const {
  static const std::vector<FileId> kNone;
  const auto found = leases_.find(lease);
  return found == leases_.end() ? kNone : found->second.files;
}

std::vector<Open*> OpenTable::broken(const AnyBreak& notification) {
  std::vector<Open*> reduced;
  if (const auto* oplock = std::get_if<OplockBreak>(&notification)) {
    Open* open = find(oplock->file);
    if (!open) return reduced;
    open->broken(oplock->level);
    reduced.push_back(open);
  } else if (const auto* lease = std::get_if<LeaseBreakNotification>(&notification)) {
    for (const FileId& file : sharers(lease->key)) {
      Open* open = find(file);
      open->break_pending = lease->needs_acknowledgement;
      open->caching &= lease->new_state;
      reduced.push_back(open);
    }
  }
  return reduced;
}

void OpenTable::acknowledged(const AnyBreak& answer) {
  if (const auto* oplock = std::get_if<OplockBreak>(&answer)) {
    Open* open = find(oplock->file);
    if (!open) return;
    open->break_pending = false;
    open->oplock = oplock->level;
  } else if (const auto* lease = std::get_if<LeaseBreakAcknowledgement>(&answer)) {
    for (const FileId& file : sharers(lease->key)) find(file)->break_pending = false;
  }
}

void OpenTable::leave(SessionId session, std::optional<TreeId> tree) {
  const auto end = in_tree_.upper_bound({session, tree.value_or(~TreeId{0})});
  for (auto at = in_tree_.lower_bound({session, tree.value_or(0)}); at != end; ++at) {
    for (const FileId& file : at->second.staying)
      if (Open* open = find(file)) open->closing = true;
    at->second.leaving.merge(at->second.staying);
  }
}

std::vector<FileId> OpenTable::in(SessionId session, std::optional<TreeId> tree) const {
  std::vector<FileId> files;
  const auto end = in_tree_.upper_bound({session, tree.value_or(~TreeId{0})});
  for (auto at = in_tree_.lower_bound({session, tree.value_or(0)}); at != end; ++at) {
    files.insert(files.end(), at->second.staying.begin(), at->second.staying.end());
    files.insert(files.end(), at->second.leaving.begin(), at->second.leaving.end());
  }
  return files;
}

void OpenTable::restarted(SessionId session) {
  const auto since = since_setup_.extract(session);
  if (since.empty()) return;
  for (const FileId& file : since.mapped())
    if (Open* open = find(file); open && open->session == session) open->caching = lease_state::none;
}

void OpenTable::regroup(Open& open, const FileGroupRef& group) {
  if (open.group == group) return;
  open.group->remove(&FileCounts::opens);
  open.group = group;
  open.group->add(&FileCounts::opens);
}

void OpenTable::moved(Open& open, std::u16string to) {
  name_bytes_ += to.size() * sizeof(char16_t);
  name_bytes_ -= open.moved_to.size() * sizeof(char16_t);
  open.moved_to = std::move(to);
}

std::size_t OpenTable::LeaseHash::operator()(const LeaseKey& key) const {
  return KeyedHash{}(load_le<std::uint64_t>(key, 0), load_le<std::uint64_t>(key, 8));
}

}  // namespace longhaul::smb::smb2
