// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/connection.h"

#include <algorithm>

#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

namespace {

// A client that gets no answers must not make us remember its requests without limit.
constexpr std::size_t kMaxPending = 4096;

bool is_transaction(Command command) {
  return command == Command::transaction || command == Command::trans2 || command == Command::nt_transact;
}

bool is_open(Command command) { return command == Command::nt_create_andx || command == Command::open_andx; }

// Opens chained with anything but READs are not tracked: one status covers the effects of the whole chain.
bool only_reads_behind(const Message& request, const Block& open) {
  return std::all_of(request.blocks.begin(), request.blocks.end(), [&](const Block& block) {
    return block.at <= open.at || block.command == Command::read_andx;
  });
}

Opening opening_of(const Header& header, const Block& block, const NtCreateRequest& request) {
  Opening opening;
  opening.is_nt_create = true;
  opening.use = smb::use_of(request.access, request.disposition);
  Open& open = opening.open;
  open.name = file_name(header, request.name);
  if (request.root_fid != 0) open.name.exact = false;
  open.unnamed = open.name.stream || request.root_fid != 0;
  open.may_read = (request.access & (kReadData | kGenericRead | kGenericAll | kMaximumAllowed)) != 0;
  open.may_write = (request.access & (kWriteData | kGenericWrite | kGenericAll)) != 0;
  open.write_through = (request.options & (kOptionWriteThrough | kOptionNoBuffering)) != 0;
  open.random = (request.options & kOptionRandom) != 0;
  open.delete_on_close = (request.options & kOptionDeleteOnClose) != 0;
  open.looks = only_looks(request);
  (void)block;
  return opening;
}

Opening opening_of(const Header& header, const Block& block, const OpenRequest& request) {
  Opening opening;
  opening.open_andx_flags = request.flags;
  using Use = LostWrites::Use;
  const bool keeps_data = (request.mode & 3) == 1;  // 2: truncated
  opening.use = !keeps_data ? Use::replaces : request.writes() ? Use::writes : Use::reads;
  Open& open = opening.open;
  const std::size_t pad = header.is_unicode() && block.bytes_at % 2 ? 1 : 0;
  open.name = file_name(header, block.bytes.subspan(std::min(pad, block.bytes.size())));
  open.unnamed = open.name.stream;
  open.may_read = request.reads();
  open.may_write = request.writes();
  open.write_through = request.write_through();
  return opening;
}

}  // namespace

MessageNumber number_of(const Header& header) { return MessageNumber{header.pid} << 16 | header.mid; }

OpenKey key_of(std::uint16_t uid, std::uint16_t tid, std::uint16_t fid) {
  OpenKey key{.session = uid, .tree = tid, .id = {}};
  store_le<std::uint16_t>(key.id.data(), fid);
  return key;
}
std::uint16_t fid_of(const OpenKey& key) { return u16_at(key.id, 0); }

void Connection::on_request(const Message& request) {
  const Header& header = request.header;
  // [MS-CIFS] 2.2.3.1: while a session is set up the bit only offers.
  if (header.is_signed() && why_untouchable_ == reasons::optimised && header.command != Command::negotiate &&
      header.command != Command::session_setup_andx)
    why_untouchable_ = reasons::smb_signed;
  Pending pending{.header = header, .chained = request.is_chained(), .effect = effect_of(request)};
  for (const Block& block : request.blocks) on_block(request, block, pending);
  if (const Open* open = open_of(request)) pending.serial = open->serial;
  if (!has_answer(request) || pending_.size() >= kMaxPending) return;
  pending_.insert_or_assign(number_of(header), std::move(pending));
}

void Connection::on_block(const Message& request, const Block& block, Pending& pending) {
  const Header& header = request.header;
  Open* open = nullptr;
  if (const auto fid = fid_of(block)) open = open_of(*fid);
  if (open && takes_locks(block)) open->locked = true;
  if (open && writes_data(block.command)) ++open->writes;
  switch (block.command) {
    case Command::negotiate:
      if (const auto negotiate = parse_negotiate_request(block)) {
        // Samba's and early NT's name for the same dialect.
        for (std::size_t i = 0; i < negotiate->dialects.size(); ++i) {
          const std::string_view name = negotiate->dialects[i];
          if (name == "NT LM 0.12" || name == "NT LANMAN 1.0")
            pending.dialects.push_back(static_cast<std::uint16_t>(i));
        }
      }
      return;
    case Command::session_setup_andx:
      if (const auto setup = parse_session_setup_request(block)) {
        client_capabilities_ = setup->capabilities;
        client_buffer_ = setup->max_buffer;
      }
      return;
    case Command::tree_connect_andx:
      pending.leaves_tree = block.words.size() >= 6 && (u16_at(block.words, 4) & 1) != 0;
      return;
    case Command::nt_create_andx:
      if (const auto create = parse_nt_create_request(block, header);
          create && only_reads_behind(request, block))
        pending.opening = std::make_unique<Opening>(opening_of(header, block, *create));
      return;
    case Command::open_andx:
      if (const auto opens = parse_open_request(block); opens && only_reads_behind(request, block))
        pending.opening = std::make_unique<Opening>(opening_of(header, block, *opens));
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
  if (!is_transaction(block.command)) return;
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
  if (open = fid ? open_of(*fid) : nullptr; open && effect_of(request, block) != Effect::none)
    open->changed = true;
}

bool Connection::is_last_part(const Message& reply, Pending& request) const {
  const Block& block = reply.first();
  if (block.command == Command::echo) return --request.answers_due == 0;
  if (!is_transaction(block.command)) return true;
  if (block.words.empty()) {
    // [MS-CIFS] 2.2.4.33.2: an interim answer asks for the secondary requests.
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
    if (block.command == Command::tree_connect_andx && block.words.size() >= 4) {
      if (request.leaves_tree)
        close_where([&](const Open& open) { return open.tid == request.header.tid; }, answered);
      if (const auto tree = parse_tree_connect_reply(block); tree && tree->is_disk) {
        disk_trees_.insert(header.tid);
      } else {
        disk_trees_.erase(header.tid);
      }
    }
  }
  for (std::uint16_t fid : request.closing) {
    Open* open = open_of(fid);
    if (!open) continue;
    if (header.status != 0) {
      open->locked = true;  // whether it is still open is unknown
    } else if (auto closed = close(open->key)) {
      answered.closed.push_back(std::move(*closed));
    }
  }
  // One that was under way when a FLUSH was requested may have been done behind it.
  Open* meant = request.serial ? open_of_serial(*request.serial) : nullptr;
  if (meant && writes_data(header.command)) ++meant->writes;
  if (header.status != 0) return answered;
  switch (header.command) {
    case Command::negotiate:
      on_negotiated(reply, request);
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
      close_where([&](const Open& open) { return open.tid == request.header.tid; }, answered);
      disk_trees_.erase(request.header.tid);
      break;
    case Command::logoff_andx:
      close_where([&](const Open& open) { return open.uid == request.header.uid; }, answered);
      break;
    case Command::process_exit:
      close_where([&](const Open& open) { return open.pid == request.header.pid; }, answered);
      break;
    default:
      break;
  }
  return answered;
}

void Connection::on_negotiated(const Message& reply, const Pending& request) {
  const auto negotiated = parse_negotiate_reply(reply.first());
  if (!negotiated || !negotiated->nt_lm_012 || !std::ranges::count(request.dialects, negotiated->dialect)) {
    why_untouchable_ = reasons::smb_not_understood;
    return;
  }
  ready_ = true;
  // Servers announce about 50; the list of pending requests is searched linearly.
  constexpr std::uint16_t kMostMpx = 256;
  max_mpx_ = std::min(negotiated->max_mpx, kMostMpx);
  capabilities_ = negotiated->capabilities;
  server_time_ =
      std::chrono::local_seconds{negotiated->system_time.time_since_epoch()} - negotiated->time_zone;
  if ((negotiated->security_mode & kSigningRequired) && !is_sealed_) why_untouchable_ = reasons::smb_signed;
}

void Connection::on_opened(const Message& reply, const Block& block, Pending& request, Answered& answered) {
  const Opening& opening = *request.opening;
  const auto file =
      opening.is_nt_create ? parse_nt_create_reply(block) : parse_open_reply(block, opening.open_andx_flags);
  if (!file || !file->is_disk_file || !is_disk(reply.header.tid)) return;
  if (!opens_.contains(file->fid) && !has_room_for_opens(1)) return;
  Open open = opening.open;
  open.uid = reply.header.uid;
  open.tid = reply.header.tid;
  open.fid = file->fid;
  open.pid = request.header.pid;
  open.flags2 = request.header.flags2;
  open.key = key_of(open.uid, open.tid, open.fid);
  open.serial = ++opened_;
  open.oplock = file->oplock;
  open.was_write_cached = open.may_cache_writes();
  open.end_of_file = open.confirmed_bytes = file->end_of_file;
  open.size_is_known = opening.is_nt_create;
  answered.opened = &opens_.insert_or_assign(open.fid, std::move(open)).first->second;
}

Open* Connection::on_break(const Message& request) {
  const auto locking = parse_locking_request(request.first());
  Open* open = locking ? open_of(locking->fid) : nullptr;
  if (!open) return nullptr;
  // [MS-CIFS] 3.2.5.42: a break to level II needs no answer; after other breaks no caching is left until they
  // are answered.
  open->break_pending = open->oplock != Oplock::level2;
  if (open->oplock == Oplock::level2) open->oplock = Oplock::none;
  return open;
}

std::optional<Open> Connection::close(const OpenKey& key) {
  const auto found = opens_.find(fid_of(key));
  if (found == opens_.end() || found->second.key != key) return std::nullopt;
  Open closed = std::move(found->second);
  opens_.erase(found);
  return closed;
}

template <class Which>
void Connection::close_where(Which&& which, Answered& answered) {
  for (auto at = opens_.begin(); at != opens_.end();) {
    if (which(at->second)) {
      answered.closed.push_back(std::move(at->second));
      at = opens_.erase(at);
    } else {
      ++at;
    }
  }
}

const Pending* Connection::pending(MessageNumber number) const {
  const auto found = pending_.find(number);
  return found == pending_.end() ? nullptr : &found->second;
}

Open* Connection::open(const OpenKey& key) {
  Open* found = open_of(fid_of(key));
  return found && found->key == key ? found : nullptr;
}

Open* Connection::open_of(std::uint16_t fid) {
  const auto found = opens_.find(fid);
  return found == opens_.end() ? nullptr : &found->second;
}

Open* Connection::open_of_serial(std::uint64_t serial) {
  for (auto& [fid, open] : opens_)
    if (open.serial == serial) return &open;
  return nullptr;
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

std::uint32_t Connection::max_read_bytes() const {
  // [MS-SMB] 3.3.5.8 and what servers do: 128 KiB with all heads.
  constexpr std::uint32_t kLarge = 0x1FFFF - 64, kHeads = 64;
  if (large_reads()) return kLarge;
  return client_buffer_ > kHeads ? client_buffer_ - kHeads : 0;
}

}  // namespace longhaul::smb::smb1
