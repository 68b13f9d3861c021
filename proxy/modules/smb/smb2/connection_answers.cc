// SPDX-License-Identifier: Apache-2.0
// How the server's messages change a Connection; connection.cc has the client's.
#include <algorithm>

#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

Connection::Outcome Connection::on_response(const Message& message) {
  Outcome outcome;
  for (const Element& element : message.elements) {
    const Header& header = element.header;
    if (header.is_unsolicited()) {
      if (header.command == Command::oplock_break) broken(element, outcome);
      continue;
    }
    auto found = pending_.find(header.message_id);
    if (found == pending_.end() || found->second.command != header.command) continue;
    if (header.is_interim()) {
      found->second.async = true;
      found->second.async_id = header.async_id;
      Answered interim{.element = &element, .interim = true};
      interim.request.command = found->second.command;
      interim.request.id = found->second.id;
      interim.request.session = found->second.session;
      interim.request.tree = found->second.tree;
      interim.request.file = found->second.file;
      outcome.answered.push_back(std::move(interim));
      continue;
    }
    finish(element, take(found), outcome);
  }
  return outcome;
}

void Connection::finish(const Element& element, Pending request, Outcome& outcome) {
  const Header& header = element.header;
  bool success = header.status == Status::success;
  if (says_expired(header.status)) session_expired(request.session);
  switch (header.command) {
    case Command::negotiate: {
      auto answer = parse_negotiate_response(element.bytes);
      if (!success || !answer || answer->dialect == Dialect::wildcard) break;
      dialect_ = answer->dialect;
      multi_credit_ = answer->multi_credit();
      multi_channel_ = client_has_channels_ && dialect_ >= Dialect::smb_3_0 &&
                       (answer->capabilities & capabilities::multi_channel);
      max_read_bytes_ = std::min(answer->max_read_bytes, kLargestTransfer);
      max_write_bytes_ = std::min(answer->max_write_bytes, kLargestTransfer);
      max_transact_bytes_ = std::min(answer->max_transact_bytes, kLargestTransfer);
      if (answer->signing_required() && !is_sealed_) leave_alone(reasons::smb_signed);
      break;
    }
    case Command::session_setup: {
      if (!success) break;
      if (sessions_.size() >= kMostSessions) return leave_alone(reasons::smb_not_understood);
      sessions_[header.session_id].expired = false;
      auto answer = parse_session_setup_response(element.bytes);
      if (answer && answer->flags & session_flags::encrypt_data && !is_sealed_)
        make_untouchable(header.session_id, reasons::smb_encrypted);
      break;
    }
    case Command::tree_connect: {
      auto answer = parse_tree_connect_response(element.bytes);
      if (!success || !answer) break;
      if (trees_.size() >= kMostTrees) return leave_alone(reasons::smb_not_understood);
      trees_[{request.session, header.tree_id}] = {answer->type, answer->flags, answer->capabilities};
      if (answer->flags & share_flags::encrypt_data && !is_sealed_)
        make_untouchable(request.session, reasons::smb_encrypted);
      break;
    }
    case Command::create:
      if (success) opened(element, request, outcome);
      break;
    case Command::write: {
      const auto written = parse_write_response(element.bytes);
      Open* open = success && written ? this->open(request.file) : nullptr;
      if (open) open->confirm(request.offset, std::min(request.length, written->count));
      break;
    }
    case Command::close:
      if (success) {
        close(request.file, request.id, outcome);
      } else if (auto* open = this->open(request.file)) {
        open->closing = false;
      }
      break;
    case Command::tree_disconnect:
      if (!success) break;
      close_all(request.session, request.tree, request.id, outcome);
      trees_.erase({request.session, request.tree});
      break;
    case Command::logoff:
      if (!success) break;
      close_all(request.session, std::nullopt, request.id, outcome);
      trees_.erase(trees_.lower_bound({request.session, 0}),
                   trees_.upper_bound({request.session, ~TreeId{0}}));
      sessions_.erase(request.session);
      since_setup_.erase(request.session);
      break;
    case Command::oplock_break: {
      auto answer = parse_break(element.bytes);
      if (!answer) break;
      if (auto* oplock = std::get_if<OplockBreak>(&*answer)) {
        if (auto* open = this->open(oplock->file)) {
          open->break_pending = false;
          open->oplock = oplock->level;
        }
      } else if (auto* lease = std::get_if<LeaseBreakAcknowledgement>(&*answer)) {
        if (const auto sharers = leases_.find(lease->key); sharers != leases_.end())
          for (const FileId& file : sharers->second.files) open(file)->break_pending = false;
      }
      break;
    }
    default:
      break;
  }
  outcome.answered.push_back({.element = &element, .request = std::move(request)});
}

void Connection::opened(const Element& element, Pending& request, Outcome& outcome) {
  auto answer = parse_create_response(element.bytes);
  if (!answer) return leave_alone(reasons::smb_not_understood);
  close(answer->file, request.id, outcome);  // a number used again: the previous one has ended
  if (opens_.size() >= kMostOpens) return;
  auto open = std::make_unique<Open>(*request.opening);
  open->file = answer->file;
  open->key = key_of(open->session, open->tree, open->file);
  open->end_of_file = open->confirmed_bytes = answer->end_of_file;
  open->allocation_bytes = answer->allocation_bytes;
  open->file_attributes = answer->file_attributes;
  open->times = answer->times;
  open->durable = answer->durable || answer->persistent;
  open->directory = answer->file_attributes & file_attributes::directory;
  const Tree* tree = this->tree(open->session, open->tree);
  constexpr std::uint32_t kNotPlain = file_attributes::directory | file_attributes::reparse_point |
                                      file_attributes::offline | file_attributes::recall_on_data_access;
  open->disk_file = tree && tree->type == ShareType::disk && !(answer->file_attributes & kNotPlain);
  open->oplock = answer->oplock;
  open->caching = answer->caching();
  if (answer->oplock == OplockLevel::lease && answer->lease) share_lease(*open, *answer->lease);
  open->was_write_cached = open->caching & lease_state::write;
  for (MessageId follower : request.followers)
    if (auto next = pending_.find(follower); next != pending_.end()) next->second.file = open->file;

  Open* kept = open.get();
  open->group->add(&FileCounts::opens);
  name_bytes_ += open->name_bytes();
  in_tree_[{open->session, open->tree}].staying.insert(open->file);
  since_setup_[open->session].push_back(open->file);
  opens_.insert_or_assign(open->file, std::move(open));
  outcome.changes.push_back({.kind = Change::Kind::opened, .open = kept, .by = request.id});
}

// All opens under its key share one lease, which may have grown with this one.
void Connection::share_lease(Open& open, const Lease& lease) {
  open.lease = lease.key;
  open.break_pending = lease.flags & lease_flags::break_in_progress;
  Sharers& sharers = leases_[lease.key];
  ++sharers.opens;
  if (sharers.files.size() >= kMostSharers) {
    open.caching = lease_state::none;
    return;
  }
  for (const FileId& file : sharers.files) {
    Open* sharer = this->open(file);
    sharer->caching = open.caching;
    sharer->was_write_cached |= (open.caching & lease_state::write) != 0;
    sharer->break_pending = open.break_pending;
  }
  sharers.files.push_back(open.file);
}

void Connection::close(const FileId& file, MessageId by, Outcome& outcome) {
  auto found = opens_.find(file);
  if (found == opens_.end()) return;
  outcome.closed.push_back(std::move(found->second));
  opens_.erase(found);
  Open& open = *outcome.closed.back();
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
  outcome.changes.push_back({.kind = Change::Kind::closed, .open = &open, .by = by});
}

void Connection::close_all(SessionId session, std::optional<TreeId> tree, MessageId by, Outcome& outcome) {
  std::vector<FileId> files;
  const auto end = in_tree_.upper_bound({session, tree.value_or(~TreeId{0})});
  for (auto at = in_tree_.lower_bound({session, tree.value_or(0)}); at != end; ++at) {
    files.insert(files.end(), at->second.staying.begin(), at->second.staying.end());
    files.insert(files.end(), at->second.leaving.begin(), at->second.leaving.end());
  }
  for (const FileId& file : files) close(file, by, outcome);
}

void Connection::broken(const Element& element, Outcome& outcome) {
  auto parsed = parse_break(element.bytes);
  if (!parsed) return leave_alone(reasons::smb_not_understood);
  if (auto* oplock = std::get_if<OplockBreak>(&*parsed)) {
    Open* open = this->open(oplock->file);
    if (!open) return;
    // 3.3.4.6: a broken level II needs no acknowledgement. Judged by what the server granted: `caching` may
    // have been given up meanwhile, without the server's knowledge.
    open->break_pending = caching_of(open->oplock) & lease_state::write;
    // If we requested it, the rest is a shared oplock, which the client did not request either
    // (far_oplocks.cc).
    open->caching = open->on_behalf ? +lease_state::none : open->caching & caching_of(oplock->level);
    open->oplock = oplock->level;
    outcome.changes.push_back({.kind = Change::Kind::broken, .open = open});
  } else if (auto* lease = std::get_if<LeaseBreakNotification>(&*parsed)) {
    const auto sharers = leases_.find(lease->key);
    if (sharers == leases_.end()) return;
    for (const FileId& file : sharers->second.files) {
      Open* open = this->open(file);
      open->break_pending = lease->needs_acknowledgement;
      open->caching &= lease->new_state;
      outcome.changes.push_back({.kind = Change::Kind::broken, .open = open});
    }
  }
}

Connection::Outcome Connection::answered_here(MessageId id) {
  Outcome outcome;
  auto found = pending_.find(id);
  if (found == pending_.end()) return outcome;
  Pending request = take(found);
  if (request.command == Command::close) close(request.file, request.id, outcome);
  outcome.answered.push_back({.request = std::move(request)});
  return outcome;
}

}  // namespace longhaul::smb::smb2
