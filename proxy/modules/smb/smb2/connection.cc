// SPDX-License-Identifier: Apache-2.0
// How the client's requests change a Connection; connection_answers.cc has the server's messages.
#include "proxy/modules/smb/smb2/connection.h"

#include "proxy/modules/smb/smb2/chain.h"
#include "proxy/modules/smb/smb2/request_effects.h"

namespace longhaul::smb::smb2 {

std::optional<Message> Connection::parse(const Frame& frame) {
  if (frame.kind == FrameKind::smb2)
    if (auto message = parse_message(frame)) return std::move(*message);
  if (frame.kind == FrameKind::smb2_transform) {
    sessions_.came_encrypted();
  } else {
    sessions_.leave_alone(reasons::smb_not_understood);
  }
  return std::nullopt;
}

Changes Connection::on_request(const Message& message) {
  Changes changes;
  Chain chain;
  for (const Element& element : message.elements) note(message, element, chain, changes);
  if (pending_.are_too_many()) {
    pending_.clear();
    sessions_.leave_alone(reasons::smb_not_understood);
  }
  return changes;
}

void Connection::note(const Message& message, const Element& element, Chain& chain, Changes& changes) {
  const Header& header = element.header;
  chain.begin(header);
  if (header.command == Command::cancel) return;
  if (header.is_signed() && is_ordinary(element)) sessions_.came_signed(chain.session());

  Pending request;
  request.command = header.command;
  request.id = header.message_id;
  request.session = chain.session();
  request.tree = chain.tree();
  request.in_compound = !message.single();
  request.charge = header.charge();

  switch (header.command) {
    case Command::negotiate:
      if (const auto offer = parse_negotiate_request(element.bytes)) negotiated_.offered(*offer);
      break;
    case Command::session_setup: {
      const auto setup = parse_session_setup_request(element.bytes);
      if (setup && setup->binding) sessions_.bound_elsewhere(request.session);
      opens_.restarted(request.session);
      if (!opens_.all().empty()) void_file(files_.any(), request, changes);
      break;
    }
    case Command::create:
      note_create(element, request, changes);
      chain.creates(request.id);
      break;
    case Command::tree_disconnect:
      opens_.leave(request.session, request.tree);
      break;
    case Command::logoff:
      opens_.leave(request.session, std::nullopt);
      break;
    default:
      apply(effects_of(element), request, chain, changes);
      break;
  }
  pending_.add(std::move(request));
}

void Connection::note_create(const Element& element, Pending& request, Changes& changes) {
  request.opening = std::make_unique<Open>();
  Open& open = *request.opening;
  open.session = request.session;
  open.tree = request.tree;
  open.replayed = element.header.is_replay();
  const auto create = parse_create_request(element.bytes);
  if (!create) {
    open.name.exact = false;
    open.group = files_.any();
    return sessions_.leave_alone(reasons::smb_not_understood);
  }
  open.requested(*create, element.header);
  open.group = files_.group_of(open.name);
  request.opens_file = Counted(open.group, &FileCounts::opening);
  if (open.truncates()) void_file(open.group, request, changes);
}

void Connection::apply(const RequestEffects& effects, Pending& request, Chain& chain, Changes& changes) {
  request.offset = effects.offset;
  request.length = effects.length;
  request.info_type = effects.info_type;
  request.info_class = effects.info_class;
  request.lists_afresh = effects.lists_afresh;
  if (!effects.file) return;
  Open* open = note_file(request, *effects.file, chain);
  if (request.command == Command::close) {
    if (open) open->closing = true;
    if (Pending* create = chain.create() ? pending_.find(*chain.create()) : nullptr)
      create->closed_in_compound = true;
  }
  if (open && effects.locks) {
    open->locked = true;
    open->group->add(&FileCounts::locks);
  }
  if (open && effects.makes_durable) open->durable = open->outlasts_breaks = true;
  if (effects.changes_file) void_file(file_meant(open, chain), request, changes);
  // The new name is not tracked: from now on it may be any name.
  if (open && effects.renames) {
    open->name.exact = false;
    opens_.regroup(*open, files_.any());
  }
}

// The open that it refers to, if known.
Open* Connection::note_file(Pending& request, const Result<FileId>& file, Chain& chain) {
  if (!file) {
    sessions_.leave_alone(reasons::smb_not_understood);
    return nullptr;
  }
  chain.names(*file);
  if (chain.file()) request.file = *chain.file();
  Open* open = this->open(request.file);
  if (open) open->may_be_replayed = false;
  if (Pending* create = chain.create() ? pending_.find(*chain.create()) : nullptr) {
    create->followers.push_back(request.id);
    if (create->opening) create->opening->may_be_replayed = false;
  }
  return open;
}

// The file of an unknown open may be any file.
FileGroupRef Connection::file_meant(const Open* open, const Chain& chain) {
  if (open) return open->group;
  const Pending* create = chain.create() ? pending_.find(*chain.create()) : nullptr;
  return create && create->opening ? create->opening->group : files_.any();
}

// Makes the data of all opens that may refer to this file void.
void Connection::void_file(const FileGroupRef& file, Pending& request, Changes& changes) {
  file->add(&FileCounts::changes);
  if (request.command == Command::write && !request.in_compound) file->add(&FileCounts::writes);
  request.changes_file = Counted(file, &FileCounts::unsettled);
  changes.push_back({.kind = Change::Kind::voided, .by = request.id, .file = file});
}

// ---- current state

bool Connection::being_opened(const FileGroup& file, MessageId except) const {
  const Pending* own = pending(except);
  const bool counts_own = own && own->opens_file && may_be_same_file(*own->opens_file.group(), file);
  return file.count(&FileCounts::opening) > (counts_own ? 1u : 0u);
}

std::size_t Connection::state_bytes() const { return opens_.held_bytes() + pending_.held_bytes(); }

}  // namespace longhaul::smb::smb2
