// SPDX-License-Identifier: Apache-2.0
// What the server's messages tell a Connection; what the client's do is in connection.cc.
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
    Pending request = std::move(found->second);
    pending_.erase(found);
    finish(element, std::move(request), outcome);
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
      max_read_bytes_ = answer->max_read_bytes;
      max_write_bytes_ = answer->max_write_bytes;
      max_transact_bytes_ = answer->max_transact_bytes;
      if (answer->signing_required()) leave_alone(flows::Reason::smb_signed);
      break;
    }
    case Command::session_setup: {
      if (!success) break;
      sessions_[header.session_id].expired = false;
      auto answer = parse_session_setup_response(element.bytes);
      if (answer && answer->flags & session_flags::encrypt_data)
        make_untouchable(header.session_id, flows::Reason::smb_encrypted);
      break;
    }
    case Command::tree_connect: {
      auto answer = parse_tree_connect_response(element.bytes);
      if (!success || !answer) break;
      trees_[{request.session, header.tree_id}] = {answer->type, answer->flags, answer->capabilities};
      if (answer->flags & share_flags::encrypt_data)
        make_untouchable(request.session, flows::Reason::smb_encrypted);
      break;
    }
    case Command::create:
      if (success) opened(element, request, outcome);
      break;
    case Command::close:
      if (success) {
        close(request.file, request.id, outcome);
      } else if (auto* open = this->open(request.file)) {
        open->closing = false;
      }
      break;
    case Command::tree_disconnect:
      if (!success) break;
      close_all(
          [&](const Open& open) { return open.session == request.session && open.tree == request.tree; },
          request.id, outcome);
      trees_.erase({request.session, request.tree});
      break;
    case Command::logoff:
      if (!success) break;
      close_all([&](const Open& open) { return open.session == request.session; }, request.id, outcome);
      std::erase_if(trees_, [&](const auto& tree) { return tree.first.first == request.session; });
      sessions_.erase(request.session);
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
        for (Open* open : opens_of(lease->key)) open->break_pending = false;
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
  if (!answer) return leave_alone(flows::Reason::smb_not_understood);
  close(answer->file, request.id, outcome);  // a number used again: the one before is gone
  auto open = std::make_unique<Open>(*request.opening);
  open->file = answer->file;
  open->key = key_of(open->session, open->tree, open->file);
  open->end_of_file = answer->end_of_file;
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
  for (Open* same : opens_of(open->name)) open->locked = open->locked || same->locked;
  if (answer->oplock == OplockLevel::lease && answer->lease) {
    open->lease = answer->lease->key;
    open->break_pending = answer->lease->flags & lease_flags::break_in_progress;
    // One lease is shared by all opens under its key, and may have grown with this one.
    for (Open* sharer : opens_of(answer->lease->key)) {
      sharer->caching = open->caching;
      sharer->break_pending = open->break_pending;
    }
  }
  for (MessageId follower : request.followers)
    if (auto next = pending_.find(follower); next != pending_.end()) next->second.file = open->file;

  Open* kept = open.get();
  opens_.insert_or_assign(open->file, std::move(open));
  outcome.changes.push_back({Change::Kind::opened, kept, request.id});
}

void Connection::close(const FileId& file, MessageId by, Outcome& outcome) {
  auto found = opens_.find(file);
  if (found == opens_.end()) return;
  outcome.closed.push_back(std::move(found->second));
  opens_.erase(found);
  outcome.changes.push_back({Change::Kind::closed, outcome.closed.back().get(), by});
}

template <class Which>
void Connection::close_all(Which&& which, MessageId by, Outcome& outcome) {
  std::vector<FileId> files;
  for (const auto& [file, open] : opens_)
    if (which(*open)) files.push_back(file);
  for (const FileId& file : files) close(file, by, outcome);
}

void Connection::broken(const Element& element, Outcome& outcome) {
  auto parsed = parse_break(element.bytes);
  if (!parsed) return leave_alone(flows::Reason::smb_not_understood);
  if (auto* oplock = std::get_if<OplockBreak>(&*parsed)) {
    Open* open = this->open(oplock->file);
    if (!open) return;
    // 3.3.4.6: a broken level II asks for no acknowledgement.
    // By what the server granted: `caching` may have been given up meanwhile, which it does not know.
    open->break_pending = caching_of(open->oplock) & lease_state::write;
    // What is left when it was asked by us is shared, which the client asked for as little (far_oplocks.cc).
    open->caching = open->on_behalf ? +lease_state::none : open->caching & caching_of(oplock->level);
    open->oplock = oplock->level;
    outcome.changes.push_back({Change::Kind::broken, open});
  } else if (auto* lease = std::get_if<LeaseBreakNotification>(&*parsed)) {
    for (Open* open : opens_of(lease->key)) {
      open->break_pending = lease->needs_acknowledgement;
      open->caching &= lease->new_state;
      outcome.changes.push_back({Change::Kind::broken, open});
    }
  }
}

Connection::Outcome Connection::answered_here(MessageId id) {
  Outcome outcome;
  auto found = pending_.find(id);
  if (found == pending_.end()) return outcome;
  Pending request = std::move(found->second);
  pending_.erase(found);
  if (request.command == Command::close) close(request.file, request.id, outcome);
  outcome.answered.push_back({.request = std::move(request)});
  return outcome;
}

}  // namespace longhaul::smb::smb2
