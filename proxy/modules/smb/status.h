// SPDX-License-Identifier: Apache-2.0
// NT status codes that SMB1 (with NT status) and SMB2 share, [MS-ERREF] section 2.3.1: those that are checked
// or sent here. Any other value passes through a Status unchanged.
#pragma once
#include <cstdint>

namespace longhaul::smb {

enum class Status : std::uint32_t {
  success = 0,
  pending = 0x00000103,
  notify_cleanup = 0x0000010B,
  notify_enum_dir = 0x0000010C,
  buffer_overflow = 0x80000005,
  no_more_files = 0x80000006,
  stopped_on_symlink = 0x8000002D,
  unsuccessful = 0xC0000001,
  info_length_mismatch = 0xC0000004,
  invalid_handle = 0xC0000008,
  invalid_parameter = 0xC000000D,
  no_such_file = 0xC000000F,
  end_of_file = 0xC0000011,
  more_processing_required = 0xC0000016,
  access_denied = 0xC0000022,
  buffer_too_small = 0xC0000023,
  object_name_not_found = 0xC0000034,
  object_name_collision = 0xC0000035,
  object_path_not_found = 0xC000003A,
  sharing_violation = 0xC0000043,
  quota_exceeded = 0xC0000044,
  file_lock_conflict = 0xC0000054,
  lock_not_granted = 0xC0000055,
  delete_pending = 0xC0000056,
  disk_full = 0xC000007F,
  insufficient_resources = 0xC000009A,
  media_write_protected = 0xC00000A2,
  pipe_disconnected = 0xC00000B0,
  io_timeout = 0xC00000B5,
  not_supported = 0xC00000BB,
  network_name_deleted = 0xC00000C9,
  not_same_device = 0xC00000D4,
  invalid_oplock_protocol = 0xC00000E3,
  io_device_error = 0xC0000185,
  cancelled = 0xC0000120,
  file_deleted = 0xC0000123,
  file_closed = 0xC0000128,
  user_session_deleted = 0xC0000203,
  lost_writebehind_data = 0xC0000222,
  network_session_expired = 0xC000035C,
};

// [MS-ERREF] section 2.3: the two highest bits. Success and "informational" have the body of a successful
// response; warnings mostly do not.
constexpr bool is_error(Status status) { return static_cast<std::uint32_t>(status) >> 30 == 3; }
// 3.3.5.2.9: the client has to authenticate again first.
constexpr bool says_expired(Status status) {
  return status == Status::network_session_expired || status == Status::user_session_deleted;
}
constexpr bool is_warning(Status status) { return static_cast<std::uint32_t>(status) >> 30 == 2; }

}  // namespace longhaul::smb
