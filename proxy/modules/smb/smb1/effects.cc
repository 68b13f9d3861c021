// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/effects.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/transactions.h"

namespace longhaul::smb::smb1 {

namespace {

Effect effect_of_trans2(std::uint16_t function) {
  switch (static_cast<Trans2>(function)) {
    case Trans2::find_first2:
    case Trans2::find_next2:
    case Trans2::query_fs_information:
    case Trans2::query_path_information:
    case Trans2::query_file_information:
    case Trans2::get_dfs_referral:
      return Effect::none;
    case Trans2::set_file_information:
      return Effect::file;
    default:
      return Effect::names;
  }
}

Effect effect_of_nt_transact(std::uint16_t function) {
  switch (static_cast<NtTransact>(function)) {
    case NtTransact::notify_change:
    case NtTransact::query_security_descriptor:
    case NtTransact::query_quota:
      return Effect::none;
    case NtTransact::ioctl:
    case NtTransact::set_security_descriptor:
      return Effect::file;
    default:
      return Effect::names;
  }
}

}  // namespace

bool takes_locks(const Block& block) {
  switch (block.command) {
    case Command::lock_byte_range:
    case Command::unlock_byte_range:
    case Command::lock_and_read:
    case Command::write_and_unlock:
      return true;
    case Command::locking_andx: {
      const auto locking = parse_locking_request(block);
      return !locking || !locking->is_oplock_release() || locking->locks != 0 || locking->unlocks != 0;
    }
    default:
      return false;
  }
}

bool writes_data(Command command) {
  switch (command) {
    case Command::write_andx:
    case Command::write:
    case Command::write_and_unlock:
    case Command::write_and_close:
    case Command::write_raw:
    case Command::write_mpx:
      return true;
    default:
      return false;
  }
}

Effect effect_of(const Message& request, const Block& block) {
  if (takes_locks(block)) return Effect::locks;
  switch (block.command) {
    case Command::negotiate:
    case Command::session_setup_andx:
    case Command::tree_connect_andx:
    case Command::tree_connect:
    case Command::echo:
    case Command::flush:
    case Command::close:
    case Command::read_andx:
    case Command::read:
    case Command::read_raw:
    case Command::read_mpx:
    case Command::seek:
    case Command::locking_andx:
    case Command::query_information:
    case Command::query_information2:
    case Command::query_information_disk:
    case Command::check_directory:
    case Command::search:
    case Command::find:
    case Command::find_unique:
    case Command::find_close:
    case Command::find_close2:
    case Command::nt_cancel:
    case Command::transaction:  // pipes and mailslots
    case Command::transaction_secondary:
      return Effect::none;
    case Command::write_andx:
    case Command::write:
    case Command::write_raw:
    case Command::write_mpx:
    case Command::write_and_close:
    case Command::set_information2:
    case Command::ioctl:
      return Effect::file;
    case Command::nt_create_andx: {
      const auto create = parse_nt_create_request(block, request.header);
      const bool only_opens =
          create && (create->disposition == static_cast<std::uint32_t>(Disposition::open) ||
                     create->disposition == static_cast<std::uint32_t>(Disposition::create) ||
                     create->disposition == static_cast<std::uint32_t>(Disposition::open_if));
      return only_opens ? Effect::none : Effect::names;
    }
    case Command::open_andx: {
      const auto open = parse_open_request(block);
      return open && (open->mode & 3) != 2 ? Effect::none : Effect::names;
    }
    case Command::trans2:
    case Command::nt_transact: {
      const auto part = parse_transaction(request, block);
      if (!part) return Effect::names;
      return block.command == Command::trans2 ? effect_of_trans2(part->function)
                                              : effect_of_nt_transact(part->function);
    }
    default:
      return Effect::names;
  }
}

bool has_answer(const Message& request) {
  switch (request.header.command) {
    case Command::nt_cancel:
    case Command::transaction_secondary:
    case Command::trans2_secondary:
    case Command::nt_transact_secondary:
    case Command::read_mpx_secondary:
    case Command::write_mpx_secondary:
      return false;
    case Command::echo:
      return request.first().words.size() >= 2 && u16_at(request.first().words, 0) != 0;
    case Command::locking_andx: {
      // [MS-CIFS] 3.2.4.18: the acknowledgement of a break has no answer, unless it also contains locks.
      const auto locking = parse_locking_request(request.first());
      return !locking || !locking->is_oplock_release() || locking->locks != 0 || locking->unlocks != 0;
    }
    default:
      return true;
  }
}

Effect effect_of(const Message& request) {
  Effect worst = Effect::none;
  for (const Block& block : request.blocks) worst = std::max(worst, effect_of(request, block));
  // Further parts of an earlier request: not all of them name the file again.
  if (request.header.command == Command::trans2_secondary ||
      request.header.command == Command::nt_transact_secondary)
    return Effect::names;
  return worst;
}

// [MS-FSA] 2.1.5.1.2 and the behaviour of servers: an open for attributes only breaks no oplock.
bool only_looks(const NtCreateRequest& request) {
  constexpr std::uint32_t kLooks = kReadAttributes | kWriteAttributes | kSynchronize;
  const auto disposition = static_cast<Disposition>(request.disposition);
  return (request.access & ~kLooks) == 0 && request.access != 0 && request.root_fid == 0 &&
         (request.flags & (kRequestOplock | kRequestBatch)) == 0 &&
         (request.options & kOptionDeleteOnClose) == 0 &&
         (disposition == Disposition::open || disposition == Disposition::create ||
          disposition == Disposition::open_if);
}

}  // namespace longhaul::smb::smb1
