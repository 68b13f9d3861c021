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
  if (says_expired(header.status)) sessions_.expire(request.session);
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
      if (answer->signing_required() && !sessions_.is_sealed()) sessions_.leave_alone(reasons::smb_signed);
      break;
    }
    case Command::session_setup: {
      if (!success) break;
      if (!sessions_.begun(header.session_id)) return sessions_.leave_alone(reasons::smb_not_understood);
      auto answer = parse_session_setup_response(element.bytes);
      if (answer && answer->flags & session_flags::encrypt_data && !sessions_.is_sealed())
        sessions_.make_untouchable(header.session_id, reasons::smb_encrypted);
      break;
    }
    case Command::tree_connect: {
      auto answer = parse_tree_connect_response(element.bytes);
      if (!success || !answer) break;
      if (trees_.size() >= kMostTrees) return sessions_.leave_alone(reasons::smb_not_understood);
      trees_[{request.session, header.tree_id}] = {answer->type, answer->flags, answer->capabilities};
      if (answer->flags & share_flags::encrypt_data && !sessions_.is_sealed())
        sessions_.make_untouchable(request.session, reasons::smb_encrypted);
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
      sessions_.ended(request.session);
      opens_.ended(request.session);
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
        for (const FileId& file : opens_.sharers(lease->key)) open(file)->break_pending = false;
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
  if (!answer) return sessions_.leave_alone(reasons::smb_not_understood);
  close(answer->file, request.id, outcome);  // a number used again: the previous one has ended
  if (opens_.is_full()) return;
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
  if (answer->oplock == OplockLevel::lease && answer->lease) opens_.share_lease(*open, *answer->lease);
  open->was_write_cached = open->caching & lease_state::write;
  for (MessageId follower : request.followers)
    if (auto next = pending_.find(follower); next != pending_.end()) next->second.file = open->file;

  outcome.changes.push_back(
      {.kind = Change::Kind::opened, .open = &opens_.add(std::move(open)), .by = request.id});
}

void Connection::close(const FileId& file, MessageId by, Outcome& outcome) {
  auto open = opens_.remove(file);
  if (!open) return;
  outcome.closed.push_back(std::move(open));
  outcome.changes.push_back({.kind = Change::Kind::closed, .open = outcome.closed.back().get(), .by = by});
}

void Connection::close_all(SessionId session, std::optional<TreeId> tree, MessageId by, Outcome& outcome) {
  for (const FileId& file : opens_.in(session, tree)) close(file, by, outcome);
}

void Connection::broken(const Element& element, Outcome& outcome) {
  auto parsed = parse_break(element.bytes);
  if (!parsed) return sessions_.leave_alone(reasons::smb_not_understood);
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
    for (const FileId& file : opens_.sharers(lease->key)) {
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
