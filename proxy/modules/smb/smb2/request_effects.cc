// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/request_effects.h"

namespace longhaul::smb::smb2 {
namespace {

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

template <class Request>
Result<FileId> file_in(const Result<Request>& request) {
  if (!request) return request.error();
  return request->file;
}

RequestEffects effects_of_write(Bytes element) {
  const auto write = parse_write_request(element);
  RequestEffects effects{.file = file_in(write), .changes_file = true};
  if (!write) return effects;
  effects.offset = write->offset;
  effects.length = static_cast<std::uint32_t>(write->data.size());
  return effects;
}

RequestEffects effects_of_ioctl(Bytes element) {
  const auto ioctl = parse_ioctl_request(element);
  return {.file = file_in(ioctl),
          .changes_file = !ioctl || !is_harmless(*ioctl),
          .makes_durable = ioctl && ioctl->code == fsctl::lmr_request_resiliency};
}

RequestEffects effects_of_query_directory(Bytes element) {
  constexpr std::uint8_t kFromBeginning =
      query_directory_flags::restart_scans | query_directory_flags::reopen;
  const auto query = parse_query_directory_request(element);
  if (!query) return {.file = query.error()};
  return {.file = query->file,
          .info_class = query->info_class,
          .lists_afresh = (query->flags & kFromBeginning) != 0};
}

RequestEffects effects_of_set_info(Bytes element) {
  const auto set = parse_set_info_request(element);
  if (!set) return {.file = set.error(), .changes_file = true};
  const bool gives_name = set->info_class == file_info::rename || set->info_class == file_info::rename_ex ||
                          set->info_class == file_info::link;
  return {.file = set->file,
          .info_type = set->type,
          .info_class = set->info_class,
          .changes_file = true,
          .renames = set->type == InfoType::file && gives_name};
}

}  // namespace

RequestEffects effects_of(const Element& request) {
  const Bytes bytes = request.bytes;
  switch (request.header.command) {
    case Command::close:
      return {.file = file_in(parse_close_request(bytes))};
    case Command::flush:
      return {.file = file_in(parse_flush_request(bytes))};
    case Command::read: {
      const auto read = parse_read_request(bytes);
      if (!read) return {.file = read.error()};
      return {.file = read->file, .offset = read->offset, .length = read->length};
    }
    case Command::write:
      return effects_of_write(bytes);
    case Command::lock:
      return {.file = file_in(parse_lock_request(bytes)), .changes_file = true, .locks = true};
    case Command::ioctl:
      return effects_of_ioctl(bytes);
    case Command::query_directory:
      return effects_of_query_directory(bytes);
    case Command::change_notify:
      return {.file = file_in(parse_change_notify_request(bytes))};
    case Command::query_info: {
      const auto query = parse_query_info_request(bytes);
      if (!query) return {.file = query.error()};
      return {.file = query->file, .info_type = query->type, .info_class = query->info_class};
    }
    case Command::set_info:
      return effects_of_set_info(bytes);
    default:
      return {};
  }
}

bool is_ordinary(const Element& request) {
  switch (request.header.command) {
    case Command::negotiate:
    case Command::session_setup:
    case Command::tree_connect:
    case Command::logoff:
      return false;
    case Command::ioctl: {
      const auto ioctl = parse_ioctl_request(request.bytes);
      return !ioctl || ioctl->code != fsctl::validate_negotiate_info;
    }
    default:
      return true;
  }
}

}  // namespace longhaul::smb::smb2
