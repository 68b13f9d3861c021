// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/connection.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

namespace {

// A client that gets no responses must not make us store its requests without limit.
constexpr std::size_t kMaxPending = 4096;

bool is_transaction(Command command) {
  return command == Command::transaction || command == Command::trans2 || command == Command::nt_transact;
}

bool is_open(Command command) { return command == Command::nt_create_andx || command == Command::open_andx; }

}  // namespace

MessageNumber number_of(const Header& header) {
  return MessageNumber{std::uint64_t{header.pid} << 16 | header.mid};
}

void Connection::on_request(const Message& request) {
  const Header& header = request.header;
  negotiated_.on_request(header);
  Pending pending{.header = header, .chained = request.is_chained(), .effect = effect_of(request)};
  for (const Block& block : request.blocks) on_block(request, block, pending);
  if (const Open* open = open_of(request)) pending.serial = open->serial;
  if (!has_answer(request) || pending_.size() >= kMaxPending) return;
  pending_.insert_or_assign(number_of(header), std::move(pending));
}

void Connection::on_block(const Message& request, const Block& block, Pending& pending) {
  Open* open = nullptr;
  if (const auto fid = fid_of(block)) open = opens_.find(*fid);
  if (open && takes_locks(block)) open->locked = true;
  if (open && writes_data(block.command)) ++open->writes;
  switch (block.command) {
    case Command::negotiate:
      pending.dialects = nt_lm_012_in(block);
      return;
    case Command::session_setup_andx:
      negotiated_.on_session_setup(block);
      return;
    case Command::tree_connect_andx:
      pending.leaves_tree = block.words.size() >= 6 && (u16_at(block.words, 4) & 1) != 0;
      return;
    case Command::nt_create_andx:
    case Command::open_andx:
      if (auto opening = opening_of(request, block))
        pending.opening = std::make_unique<Opening>(std::move(*opening));
      return;
    case Command::close:
    case Command::write_and_close:
      if (const auto fid = fid_of(block)) pending.closing.push_back(*fid);
      return;
    case Command::locking_andx:
      if (const auto locking = parse_locking_request(block);
          locking && open && locking->is_oplock_release()) {
        open->oplock =
            locking->oplock_level == 1 && open->oplock != Oplock::none ? Oplock::level2 : Oplock::none;
        open->break_pending = false;
      }
      return;
    case Command::echo:
      if (block.words.size() >= 2) pending.answers_due = u16_at(block.words, 0);
      return;
    case Command::flush:
      if (open) pending.writes = open->writes;
      return;
    case Command::set_information2:
    case Command::write_andx:
      if (const auto write = parse_write_request(request, block)) pending.offset = write->offset;
      return;
    case Command::write_raw:  // CLOSE may report its error ([MS-CIFS] 2.2.4.25)
    case Command::write_mpx:
      if (open) open->changed = true;
      return;
    default:
      break;
  }
  if (is_transaction(block.command)) on_transaction(request, block, pending);
}

void Connection::on_transaction(const Message& request, const Block& block, Pending& pending) {
  const auto part = parse_transaction(request, block);
  if (!part) return;
  pending.function = part->function;
  pending.secondaries_due = !part->is_whole();
  std::optional<std::uint16_t> fid;
  if (block.command == Command::nt_transact) fid = fid_of(static_cast<NtTransact>(part->function), *part);
  if (block.command == Command::trans2 &&
      static_cast<Trans2>(part->function) == Trans2::set_file_information) {
    if (const auto information = parse_file_information(part->parameters)) fid = information->fid;
  }
  Open* open = fid ? opens_.find(*fid) : nullptr;
  if (open && effect_of(request, block) != Effect::none) open->changed = true;
}

bool Connection::is_last_part(const Message& reply, Pending& request) const {
  const Block& block = reply.first();
  if (block.command == Command::echo) return --request.answers_due == 0;
  if (!is_transaction(block.command)) return true;
  if (block.words.empty()) {
    // [MS-CIFS] 2.2.4.33.2: an interim response requests the secondary requests.
    if (reply.header.status != 0 || !request.secondaries_due) return true;
    request.secondaries_due = false;
    return false;
  }
  const auto part = parse_transaction(reply, block);
  if (!part) return true;
  request.answer_bytes += static_cast<std::uint32_t>(part->parameters.size() + part->data.size());
  return request.answer_bytes >= part->total_parameters + part->total_data;
}

Connection::Answered Connection::on_reply(const Message& reply) {
  const auto found = pending_.find(number_of(reply.header));
  if (found == pending_.end() || found->second.header.command != reply.header.command) return {};
  if (!is_last_part(reply, found->second)) return {};
  Answered answered;
  answered.request = std::move(found->second);
  pending_.erase(found);
  Pending& request = *answered.request;
  const Header& header = reply.header;
  for (const Block& block : reply.blocks) {
    if (is_open(block.command) && request.opening) on_opened(reply, block, request, answered);
    if (block.command == Command::tree_connect_andx && block.words.size() >= 4)
      on_tree_connected(reply, block, request, answered);
  }
  for (std::uint16_t fid : request.closing) {
    Open* open = opens_.find(fid);
    if (!open) continue;
    if (header.status != 0) {
      open->locked = true;  // whether it is still open is unknown
    } else if (auto closed = close(open->key)) {
      answered.closed.push_back(std::move(*closed));
    }
  }
  // A request in flight when a FLUSH was requested may have been carried out after it.
  Open* meant = request.serial ? opens_.find_serial(*request.serial) : nullptr;
  if (meant && writes_data(header.command)) ++meant->writes;
  if (header.status != 0) return answered;
  switch (header.command) {
    case Command::negotiate:
      negotiated_.on_reply(reply, request.dialects);
      break;
    case Command::flush:
      if (meant) meant->flushed_writes = std::max(meant->flushed_writes, request.writes);
      break;
    case Command::write_andx:
      if (meant)
        if (const auto written = parse_write_reply(reply.first()))
          meant->confirm(request.offset, written->count);
      break;
    case Command::tree_disconnect:
      opens_.remove_where([&](const Open& open) { return open.tid == request.header.tid; }, answered.closed);
      disk_trees_.erase(request.header.tid);
      break;
    case Command::logoff_andx:
      opens_.remove_where([&](const Open& open) { return open.uid == request.header.uid; }, answered.closed);
      break;
    case Command::process_exit:
      opens_.remove_where([&](const Open& open) { return open.pid == request.header.pid; }, answered.closed);
      break;
    default:
      break;
  }
  return answered;
}

void Connection::on_tree_connected(const Message& reply, const Block& block, const Pending& request,
                                   Answered& answered) {
  if (request.leaves_tree)
    opens_.remove_where([&](const Open& open) { return open.tid == request.header.tid; }, answered.closed);
  if (const auto tree = parse_tree_connect_reply(block); tree && tree->is_disk) {
    disk_trees_.insert(reply.header.tid);
  } else {
    disk_trees_.erase(reply.header.tid);
  }
}

void Connection::on_opened(const Message& reply, const Block& block, Pending& request, Answered& answered) {
  const Opening& opening = *request.opening;
  const auto file =
      opening.is_nt_create ? parse_nt_create_reply(block) : parse_open_reply(block, opening.open_andx_flags);
  if (!file || !file->is_disk_file || !is_disk(reply.header.tid)) return;
  Open open = opening.open;
  open.uid = reply.header.uid;
  open.tid = reply.header.tid;
  open.fid = file->fid;
  open.pid = request.header.pid;
  open.flags2 = request.header.flags2;
  open.key = key_of(open.uid, open.tid, open.fid);
  open.oplock = file->oplock;
  open.was_write_cached = open.may_cache_writes();
  open.end_of_file = open.confirmed_bytes = file->end_of_file;
  open.size_is_known = opening.is_nt_create;
  const OpenKey key = open.key;
  answered.opened = opens_.add(std::move(open));
  if (!answered.opened) answered.untracked = key;
}

Open* Connection::on_break(const Message& request) {
  const auto locking = parse_locking_request(request.first());
  Open* open = locking ? opens_.find(locking->fid) : nullptr;
  if (!open) return nullptr;
  // [MS-CIFS] 3.2.5.42: a break to level II needs no acknowledgement; after other breaks no caching is left
  // until they are acknowledged.
  open->break_pending = open->oplock != Oplock::level2;
  if (open->oplock == Oplock::level2) open->oplock = Oplock::none;
  return open;
}

bool Connection::closes(std::uint16_t fid) const {
  return std::ranges::any_of(pending_, [fid](const auto& each) {
    return std::ranges::find(each.second.closing, fid) != each.second.closing.end();
  });
}

const Pending* Connection::pending(MessageNumber number) const {
  const auto found = pending_.find(number);
  return found == pending_.end() ? nullptr : &found->second;
}

Open* Connection::open_of(const Message& request) {
  const Block& block = request.first();
  std::optional<std::uint16_t> fid = smb1::fid_of(block);
  if (!fid && (block.command == Command::trans2 || block.command == Command::nt_transact)) {
    const auto part = parse_transaction(request, block);
    if (!part) return nullptr;
    const auto function = static_cast<Trans2>(part->function);
    if (block.command == Command::nt_transact) {
      fid = smb1::fid_of(static_cast<NtTransact>(part->function), *part);
    } else if (function == Trans2::query_file_information || function == Trans2::set_file_information) {
      if (const auto information = parse_file_information(part->parameters)) fid = information->fid;
    }
  }
  if (!fid) return nullptr;
  return open(key_of(request.header.uid, request.header.tid, *fid));
}

}  // namespace longhaul::smb::smb1
