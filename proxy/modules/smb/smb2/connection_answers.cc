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
    auto match = pending_.answered(header);
    if (!match) continue;
    if (match->interim) {
      outcome.answered.push_back(
          {.element = &element, .request = std::move(match->request), .interim = true});
    } else {
      finish(element, match->request, outcome);
    }
  }
  return outcome;
}

void Connection::finish(const Element& element, Pending& request, Outcome& outcome) {
  const Header& header = element.header;
  bool success = header.status == Status::success;
  if (says_expired(header.status)) sessions_.expire(request.session);
  switch (header.command) {
    case Command::negotiate: {
      auto answer = parse_negotiate_response(element.bytes);
      if (!success || !answer || answer->dialect == Dialect::wildcard) break;
      negotiated_.chosen(*answer);
      if (answer->signing_required()) sessions_.signing_required();
      break;
    }
    case Command::session_setup: {
      if (!success) break;
      if (!sessions_.begun(header.session_id)) return sessions_.leave_alone(reasons::smb_not_understood);
      auto answer = parse_session_setup_response(element.bytes);
      if (answer && answer->flags & session_flags::encrypt_data)
        sessions_.encryption_required(header.session_id);
      break;
    }
    case Command::tree_connect: {
      auto answer = parse_tree_connect_response(element.bytes);
      if (!success || !answer) break;
      if (!trees_.connected(request.session, header.tree_id,
                            {answer->type, answer->flags, answer->capabilities}))
        return sessions_.leave_alone(reasons::smb_not_understood);
      if (answer->flags & share_flags::encrypt_data) sessions_.encryption_required(request.session);
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
      trees_.disconnected(request.session, request.tree);
      break;
    case Command::logoff:
      if (!success) break;
      close_all(request.session, std::nullopt, request.id, outcome);
      trees_.session_ended(request.session);
      sessions_.ended(request.session);
      opens_.ended(request.session);
      break;
    case Command::oplock_break:
      if (const auto answer = parse_break(element.bytes)) opens_.acknowledged(*answer);
      break;
    default:
      break;
  }
  outcome.answered.push_back({.element = &element, .request = std::move(request)});
}

void Connection::opened(const Element& element, Pending& request, Outcome& outcome) {
  auto answer = parse_create_response(element.bytes);
  if (!answer) return sessions_.leave_alone(reasons::smb_not_understood);
  close(answer->file, request.id, outcome);  // a reused number: the previous open has ended
  for (MessageId follower : request.followers)
    if (Pending* next = pending_.find(follower)) next->file = answer->file;
  if (opens_.is_full()) return;
  auto open = std::make_unique<Open>(*request.opening);
  open->granted(*answer, tree(request.session, request.tree));
  if (answer->oplock == OplockLevel::lease && answer->lease) opens_.share_lease(*open, *answer->lease);
  open->was_write_cached = open->caching & lease_state::write;
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
  const auto notification = parse_break(element.bytes);
  if (!notification) return sessions_.leave_alone(reasons::smb_not_understood);
  for (Open* open : opens_.broken(*notification))
    outcome.changes.push_back({.kind = Change::Kind::broken, .open = open});
}

Connection::Outcome Connection::answered_here(MessageId id) {
  Outcome outcome;
  auto request = pending_.take(id);
  if (!request) return outcome;
  // In a compound that opens its file nothing was opened.
  const bool has_file = !request->in_compound || request->file != FileId{};
  if (request->command == Command::close && has_file) close(request->file, request->id, outcome);
  outcome.answered.push_back({.request = std::move(*request)});
  return outcome;
}

}  // namespace longhaul::smb::smb2
