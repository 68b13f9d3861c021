// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/connection.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/lost_names.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr TreeId kPreviousTree = ~TreeId{0};

// Requests that are signed (or not) whatever the session is like: 3.2.4.1.1, 3.2.5.5, 3.1.4.1.
bool is_ordinary(const Element& element) {
  switch (element.header.command) {
    case Command::negotiate:
    case Command::session_setup:
    case Command::tree_connect:
    case Command::logoff:
      return false;
    case Command::ioctl: {
      auto request = parse_ioctl_request(element.bytes);
      return !request || request->code != fsctl::validate_negotiate_info;
    }
    default:
      return true;
  }
}

// IOCTLs that change nothing in a file.
bool is_harmless(const IoctlRequest& request) {
  if (!(request.flags & kIoctlIsFsctl)) return false;
  switch (request.code) {
    case fsctl::dfs_get_referrals:
    case fsctl::pipe_peek:
    case fsctl::pipe_wait:
    case fsctl::pipe_transceive:
    case fsctl::request_resume_key:
    case fsctl::query_network_interface_info:
    case fsctl::validate_negotiate_info:
      return true;
    default:
      return false;
  }
}

bool truncates(Disposition disposition) {
  return disposition == Disposition::supersede || disposition == Disposition::overwrite ||
         disposition == Disposition::overwrite_if;
}

// [MS-SMB2] 2.2.13.1.1: the meaning of generic rights, as far as we need it.
std::uint32_t mapped(std::uint32_t wanted) {
  if (wanted & access::generic_all)
    wanted |= access::generic_read | access::generic_write | access::generic_execute;
  if (wanted & access::generic_read) wanted |= access::read_data | access::read_ea | access::read_attributes;
  if (wanted & access::generic_write)
    wanted |= access::write_data | access::append_data | access::write_attributes;
  if (wanted & access::generic_execute) wanted |= access::execute | access::read_attributes;
  return wanted;
}

template <class Request>
Result<FileId> file_in(const Result<Request>& request) {
  if (!request) return request.error();
  return request->file;
}

}  // namespace

struct Connection::Chain {
  SessionId session = 0;
  TreeId tree = 0;
  std::optional<FileId> file;       // that the element before meant
  std::optional<MessageId> create;  // the CREATE whose answer will tell it
  bool compound = false;
};

// ---- requests

Changes Connection::on_request(const Message& message) {
  Changes changes;
  Chain chain{.compound = !message.single()};
  for (const Element& element : message.elements) note(element, chain, changes);
  if (pending_.size() > kMostPending) {
    while (!pending_.empty()) (void)take(pending_.begin());
    sessions_.leave_alone(reasons::smb_not_understood);
  }
  return changes;
}

void Connection::note(const Element& element, Chain& chain, Changes& changes) {
  const Header& header = element.header;
  if (!header.is_related()) {
    chain.file.reset();
    chain.create.reset();
  }
  if (!header.is_related() || header.session_id != kPreviousSession) chain.session = header.session_id;
  if (!header.is_related() || header.tree_id != kPreviousTree) chain.tree = header.tree_id;
  if (header.command == Command::cancel) return;
  if (header.is_signed() && is_ordinary(element)) sessions_.came_signed(chain.session);

  Pending request;
  request.command = header.command;
  request.id = header.message_id;
  request.session = chain.session;
  request.tree = chain.tree;
  request.in_compound = chain.compound;
  request.charge = header.charge();

  switch (header.command) {
    case Command::negotiate:
      if (const auto negotiate = parse_negotiate_request(element.bytes))
        client_has_channels_ = negotiate->capabilities & capabilities::multi_channel;
      break;
    case Command::session_setup: {
      auto setup = parse_session_setup_request(element.bytes);
      if (setup && setup->binding) sessions_.bound_elsewhere(chain.session);
      opens_.restarted(chain.session);
      if (!opens_.all().empty()) void_file(files_.any(), request, Alone::no, changes);
      break;
    }
    case Command::create: {
      note_create(element, request, changes);
      chain.file.reset();
      chain.create = request.id;
      break;
    }
    case Command::close:
      note_file(request, file_in(parse_close_request(element.bytes)), chain);
      if (auto* open = this->open(request.file)) open->closing = true;
      if (auto create = chain.create ? pending_.find(*chain.create) : pending_.end();
          create != pending_.end())
        create->second.closed_in_compound = true;
      break;
    case Command::tree_disconnect:
      opens_.leave(chain.session, chain.tree);
      break;
    case Command::logoff:
      opens_.leave(chain.session, std::nullopt);
      break;
    case Command::flush:
      note_file(request, file_in(parse_flush_request(element.bytes)), chain);
      break;
    case Command::read: {
      auto read = parse_read_request(element.bytes);
      note_file(request, file_in(read), chain);
      if (!read) break;
      request.offset = read->offset;
      request.length = read->length;
      break;
    }
    case Command::write: {
      auto write = parse_write_request(element.bytes);
      note_file(request, file_in(write), chain);
      if (write) {
        request.offset = write->offset;
        request.length = static_cast<std::uint32_t>(write->data.size());
      }
      voids(request, chain, chain.compound ? Alone::no : Alone::yes, changes);
      break;
    }
    case Command::lock:
      note_file(request, file_in(parse_lock_request(element.bytes)), chain);
      if (auto* open = this->open(request.file)) {
        open->locked = true;
        open->group->add(&FileCounts::locks);
      }
      voids(request, chain, Alone::no, changes);
      break;
    case Command::ioctl: {
      auto ioctl = parse_ioctl_request(element.bytes);
      note_file(request, file_in(ioctl), chain);
      if (ioctl && ioctl->code == fsctl::lmr_request_resiliency)
        if (auto* open = this->open(request.file)) open->durable = true;
      if (!ioctl || !is_harmless(*ioctl)) voids(request, chain, Alone::no, changes);
      break;
    }
    case Command::query_directory: {
      auto query = parse_query_directory_request(element.bytes);
      note_file(request, file_in(query), chain);
      if (!query) break;
      request.info_class = query->info_class;
      request.lists_afresh =
          query->flags & (query_directory_flags::restart_scans | query_directory_flags::reopen);
      break;
    }
    case Command::change_notify:
      note_file(request, file_in(parse_change_notify_request(element.bytes)), chain);
      break;
    case Command::query_info: {
      auto query = parse_query_info_request(element.bytes);
      note_file(request, file_in(query), chain);
      if (!query) break;
      request.info_type = query->type;
      request.info_class = query->info_class;
      break;
    }
    case Command::set_info: {
      auto set = parse_set_info_request(element.bytes);
      note_file(request, file_in(set), chain);
      voids(request, chain, Alone::no, changes);
      if (!set) break;
      request.info_type = set->type;
      request.info_class = set->info_class;
      // A new name, which we do not track: from now on it may be any.
      bool renames = set->info_class == file_info::rename || set->info_class == file_info::rename_ex ||
                     set->info_class == file_info::link;
      if (auto* open = this->open(request.file); open && set->type == InfoType::file && renames)
        rename(*open);
      break;
    }
    default:
      break;
  }
  put(std::move(request));
}

void Connection::put(Pending request) {
  if (const auto before = pending_.find(request.id); before != pending_.end()) (void)take(before);
  if (request.opening) request.name_bytes = request.opening->name_bytes();
  name_bytes_ += request.name_bytes;
  pending_.emplace(request.id, std::move(request));
}

// It has its answer, or needs none.
Pending Connection::take(KeyedMap<MessageId, Pending>::iterator found) {
  Pending request = std::move(found->second);
  pending_.erase(found);
  name_bytes_ -= request.name_bytes;
  request.opens_file.reset();
  request.changes_file.reset();
  return request;
}

void Connection::note_create(const Element& element, Pending& request, Changes& changes) {
  request.opening = std::make_unique<Open>();
  Open& open = *request.opening;
  open.session = request.session;
  open.tree = request.tree;
  open.replayed = element.header.is_replay();
  auto create = parse_create_request(element.bytes);
  if (!create) {
    open.name.exact = false;
    open.group = files_.any();
    return sessions_.leave_alone(reasons::smb_not_understood);
  }
  open.name = file_name_of(request.tree, *create, element.header);
  open.dfs = element.header.flags & header_flags::dfs;
  open.unnamed = create->options & create_options::open_by_file_id || names_stream(name_in(*create));
  open.access = mapped(create->desired_access);
  open.options = create->options;
  open.share_access = create->share_access;
  open.disposition = create->disposition;
  open.may_be_replayed = create->durable == Durable::request_v2;
  open.reconnected = create->durable == Durable::reconnect || create->durable == Durable::reconnect_v2;
  // A reconnected handle was named on another connection.
  if (open.reconnected) {
    open.name.exact = false;
  } else {
    open.spelled = spelled_path_of(*create, element.header);
  }
  open.group = files_.group_of(open.name);
  request.opens_file = Counted(open.group, &FileCounts::opening);
  if (truncates(open.disposition)) void_file(open.group, request, Alone::no, changes);
}

void Connection::note_file(Pending& request, const Result<FileId>& file, Chain& chain) {
  if (!file) return sessions_.leave_alone(reasons::smb_not_understood);
  if (*file != kPreviousFile) {
    chain.create.reset();
    chain.file = *file;
  }
  if (chain.file) request.file = *chain.file;
  if (Open* open = this->open(request.file)) open->may_be_replayed = false;
  if (!chain.create) return;
  if (auto create = pending_.find(*chain.create); create != pending_.end()) {
    create->second.followers.push_back(request.id);
    if (create->second.opening) create->second.opening->may_be_replayed = false;
  }
}

// The data of all opens that may be of the request's file.
void Connection::voids(Pending& request, const Chain& chain, Alone write, Changes& changes) {
  // The file of an unknown open may be any.
  FileGroupRef file = files_.any();
  if (auto* open = this->open(request.file)) {
    file = open->group;
  } else if (auto create = chain.create ? pending_.find(*chain.create) : pending_.end();
             create != pending_.end() && create->second.opening) {
    file = create->second.opening->group;
  }
  void_file(file, request, write, changes);
}

void Connection::void_file(const FileGroupRef& file, Pending& request, Alone write, Changes& changes) {
  file->add(&FileCounts::changes);
  if (write == Alone::yes) file->add(&FileCounts::writes);
  request.changes_file = Counted(file, &FileCounts::unsettled);
  changes.push_back({.kind = Change::Kind::voided, .by = request.id, .file = file});
}

void Connection::rename(Open& open) {
  open.name.exact = false;
  if (open.group->is_any()) return;
  open.group->remove(&FileCounts::opens);
  open.group = files_.any();
  open.group->add(&FileCounts::opens);
}

void Connection::cannot_be_replayed(MessageId create) {
  const auto found = pending_.find(create);
  if (found != pending_.end() && found->second.opening) found->second.opening->may_be_replayed = false;
}

}  // namespace longhaul::smb::smb2
