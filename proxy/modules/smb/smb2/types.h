// SPDX-License-Identifier: Apache-2.0
// The constants of SMB2 and SMB3: commands, flags, identifiers, access masks. Section numbers are those of
// [MS-SMB2] unless another document is named.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "codecs/bytes.h"
#include "codecs/keyed_hash.h"
#include "proxy/link/types.h"
#include "proxy/modules/smb/status.h"
#include "proxy/modules/twin/open_key.h"

namespace longhaul::smb::smb2 {

// A request's number on its connection, which its response repeats. Requests of several credits take as many
// consecutive numbers (3.2.4.1.5).
using MessageId = link::Position<struct MessageIdKind>;
using AsyncId = std::uint64_t;
using SessionId = std::uint64_t;
using TreeId = std::uint32_t;
using Guid = std::array<std::byte, 16>;
using LeaseKey = std::array<std::byte, 16>;

// The id in an unsolicited notification (3.3.4.6).
inline constexpr MessageId kUnsolicited{~0ull};

// The id in the halves' messages, and back.
constexpr twin::MessageNumber number_of(MessageId id) { return twin::MessageNumber{id.number()}; }
constexpr MessageId id_of(twin::MessageNumber number) { return MessageId{number.number()}; }

inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::uint32_t kCreditBytes = 65536;  // payload bytes per credit (3.1.5.2)

// 2.2.1.2
enum class Command : std::uint16_t {
  negotiate = 0,
  session_setup = 1,
  logoff = 2,
  tree_connect = 3,
  tree_disconnect = 4,
  create = 5,
  close = 6,
  flush = 7,
  read = 8,
  write = 9,
  lock = 10,
  ioctl = 11,
  cancel = 12,
  echo = 13,
  query_directory = 14,
  change_notify = 15,
  query_info = 16,
  set_info = 17,
  oplock_break = 18,  // leases too
  notification = 19,  // server to client, unsolicited: the session was closed (2.2.44)
};
inline constexpr Command kLastCommand = Command::notification;

// 2.2.1.2, Flags
namespace header_flags {
inline constexpr std::uint32_t response = 0x00000001;
inline constexpr std::uint32_t async = 0x00000002;
inline constexpr std::uint32_t related = 0x00000004;
inline constexpr std::uint32_t is_signed = 0x00000008;
inline constexpr std::uint32_t priority_mask = 0x00000070;
inline constexpr std::uint32_t dfs = 0x10000000;
inline constexpr std::uint32_t replay = 0x20000000;
}  // namespace header_flags

// 2.2.3 and 2.2.4
enum class Dialect : std::uint16_t {
  none = 0,
  smb_2_0_2 = 0x0202,
  smb_2_1 = 0x0210,
  smb_3_0 = 0x0300,
  smb_3_0_2 = 0x0302,
  smb_3_1_1 = 0x0311,
  wildcard = 0x02FF,  // the response to an SMB1 NEGOTIATE: negotiate again with SMB2
};

namespace capabilities {
inline constexpr std::uint32_t dfs = 0x01;
inline constexpr std::uint32_t leasing = 0x02;
inline constexpr std::uint32_t large_mtu = 0x04;  // multi-credit requests
inline constexpr std::uint32_t multi_channel = 0x08;
inline constexpr std::uint32_t persistent_handles = 0x10;
inline constexpr std::uint32_t directory_leasing = 0x20;
inline constexpr std::uint32_t encryption = 0x40;
inline constexpr std::uint32_t notifications = 0x80;
}  // namespace capabilities

namespace security_mode {
inline constexpr std::uint16_t signing_enabled = 1;
inline constexpr std::uint16_t signing_required = 2;
}  // namespace security_mode

// 2.2.14.1. Not valid in a related element of a compound, where all ones stand for the file of the previous
// one.
struct FileId {
  std::uint64_t persistent_part = 0;
  std::uint64_t volatile_part = 0;
  auto operator<=>(const FileId&) const = default;
};
inline constexpr FileId kPreviousFile{~0ull, ~0ull};

struct FileIdHash {
  std::size_t operator()(const FileId& id) const noexcept {
    return KeyedHash{}(id.persistent_part, id.volatile_part);
  }
};

// 2.2.13, RequestedOplockLevel
enum class OplockLevel : std::uint8_t {
  none = 0,
  level_ii = 0x01,
  exclusive = 0x08,
  batch = 0x09,
  lease = 0xFF
};

// 2.2.13.2.8
namespace lease_state {
inline constexpr std::uint32_t none = 0;
inline constexpr std::uint32_t read = 1;
inline constexpr std::uint32_t handle = 2;
inline constexpr std::uint32_t write = 4;
}  // namespace lease_state
namespace lease_flags {
inline constexpr std::uint32_t break_in_progress = 2;
inline constexpr std::uint32_t parent_key_set = 4;
}  // namespace lease_flags

// 2.2.13.1
namespace access {
inline constexpr std::uint32_t read_data = 0x00000001;  // of a directory: list it
inline constexpr std::uint32_t write_data = 0x00000002;
inline constexpr std::uint32_t append_data = 0x00000004;
inline constexpr std::uint32_t read_ea = 0x00000008;
inline constexpr std::uint32_t write_ea = 0x00000010;
inline constexpr std::uint32_t execute = 0x00000020;
inline constexpr std::uint32_t delete_child = 0x00000040;
inline constexpr std::uint32_t read_attributes = 0x00000080;
inline constexpr std::uint32_t write_attributes = 0x00000100;
inline constexpr std::uint32_t delete_file = 0x00010000;
inline constexpr std::uint32_t read_control = 0x00020000;
inline constexpr std::uint32_t write_dac = 0x00040000;
inline constexpr std::uint32_t write_owner = 0x00080000;
inline constexpr std::uint32_t synchronize = 0x00100000;
inline constexpr std::uint32_t access_system_security = 0x01000000;
inline constexpr std::uint32_t maximum_allowed = 0x02000000;
inline constexpr std::uint32_t generic_all = 0x10000000;
inline constexpr std::uint32_t generic_execute = 0x20000000;
inline constexpr std::uint32_t generic_write = 0x40000000;
inline constexpr std::uint32_t generic_read = 0x80000000;
}  // namespace access

// 2.2.13, ShareAccess, CreateDisposition, CreateOptions
namespace share_access {
inline constexpr std::uint32_t read = 1;
inline constexpr std::uint32_t write = 2;
inline constexpr std::uint32_t delete_file = 4;
}  // namespace share_access
enum class Disposition : std::uint32_t { supersede, open, create, open_if, overwrite, overwrite_if };
namespace create_options {
inline constexpr std::uint32_t directory_file = 0x00000001;
inline constexpr std::uint32_t write_through = 0x00000002;
inline constexpr std::uint32_t sequential_only = 0x00000004;
inline constexpr std::uint32_t no_intermediate_buffering = 0x00000008;
inline constexpr std::uint32_t non_directory_file = 0x00000040;
inline constexpr std::uint32_t random_access = 0x00000800;
inline constexpr std::uint32_t delete_on_close = 0x00001000;
inline constexpr std::uint32_t open_by_file_id = 0x00002000;
inline constexpr std::uint32_t open_for_backup = 0x00004000;
inline constexpr std::uint32_t open_reparse_point = 0x00200000;
}  // namespace create_options

// 2.2.14, CreateAction
enum class CreateAction : std::uint32_t { superseded, opened, created, overwritten };

// [MS-FSCC] 2.6
namespace file_attributes {
inline constexpr std::uint32_t read_only = 0x0001;
inline constexpr std::uint32_t directory = 0x0010;
inline constexpr std::uint32_t temporary = 0x0100;
inline constexpr std::uint32_t sparse = 0x0200;
inline constexpr std::uint32_t reparse_point = 0x0400;
inline constexpr std::uint32_t offline = 0x1000;
inline constexpr std::uint32_t recall_on_data_access = 0x400000;
}  // namespace file_attributes

// 2.2.10
enum class ShareType : std::uint8_t { disk = 1, pipe = 2, print = 3 };
namespace share_flags {
inline constexpr std::uint32_t encrypt_data = 0x00008000;
inline constexpr std::uint32_t force_levelii_oplock = 0x00001000;
inline constexpr std::uint32_t enable_hash_v1 = 0x00002000;
}  // namespace share_flags
namespace share_capabilities {
inline constexpr std::uint32_t dfs = 0x08;
inline constexpr std::uint32_t continuous_availability = 0x10;
inline constexpr std::uint32_t scaleout = 0x20;
inline constexpr std::uint32_t cluster = 0x40;
}  // namespace share_capabilities

// 2.2.6
namespace session_flags {
inline constexpr std::uint16_t guest = 1;
inline constexpr std::uint16_t anonymous = 2;
inline constexpr std::uint16_t encrypt_data = 4;
}  // namespace session_flags

// 2.2.31
namespace fsctl {
inline constexpr std::uint32_t dfs_get_referrals = 0x00060194;
inline constexpr std::uint32_t pipe_peek = 0x0011400C;
inline constexpr std::uint32_t pipe_wait = 0x00110018;
inline constexpr std::uint32_t pipe_transceive = 0x0011C017;
inline constexpr std::uint32_t copychunk = 0x001440F2;
inline constexpr std::uint32_t copychunk_write = 0x001480F2;
inline constexpr std::uint32_t request_resume_key = 0x00140078;
inline constexpr std::uint32_t lmr_request_resiliency = 0x001401D4;
inline constexpr std::uint32_t query_network_interface_info = 0x001401FC;
inline constexpr std::uint32_t validate_negotiate_info = 0x00140204;
}  // namespace fsctl

// 2.2.37
enum class InfoType : std::uint8_t { file = 1, file_system = 2, security = 3, quota = 4 };
// [MS-FSCC] 2.4 (file) and 2.5 (file system): the classes with a special treatment.
namespace file_info {
inline constexpr std::uint8_t directory = 1;
inline constexpr std::uint8_t full_directory = 2;
inline constexpr std::uint8_t both_directory = 3;
inline constexpr std::uint8_t basic = 4;
inline constexpr std::uint8_t standard = 5;
inline constexpr std::uint8_t internal = 6;
inline constexpr std::uint8_t ea = 7;
inline constexpr std::uint8_t access = 8;
inline constexpr std::uint8_t rename = 10;
inline constexpr std::uint8_t link = 11;
inline constexpr std::uint8_t names = 12;
inline constexpr std::uint8_t disposition = 13;
inline constexpr std::uint8_t position = 14;
inline constexpr std::uint8_t full_ea = 15;
inline constexpr std::uint8_t mode = 16;
inline constexpr std::uint8_t alignment = 17;
inline constexpr std::uint8_t all = 18;
inline constexpr std::uint8_t allocation = 19;
inline constexpr std::uint8_t end_of_file = 20;
inline constexpr std::uint8_t alternate_name = 21;
inline constexpr std::uint8_t stream = 22;
inline constexpr std::uint8_t pipe = 23;
inline constexpr std::uint8_t compression = 28;
inline constexpr std::uint8_t network_open = 34;
inline constexpr std::uint8_t attribute_tag = 35;
inline constexpr std::uint8_t id_both_directory = 37;
inline constexpr std::uint8_t id_full_directory = 38;
inline constexpr std::uint8_t valid_data_length = 39;
inline constexpr std::uint8_t normalized_name = 48;
inline constexpr std::uint8_t id = 59;
inline constexpr std::uint8_t id_extd_directory = 60;
inline constexpr std::uint8_t id_extd_both_directory = 63;
inline constexpr std::uint8_t disposition_ex = 64;
inline constexpr std::uint8_t rename_ex = 65;
}  // namespace file_info
namespace fs_info {
inline constexpr std::uint8_t volume = 1;
inline constexpr std::uint8_t size = 3;
inline constexpr std::uint8_t device = 4;
inline constexpr std::uint8_t attribute = 5;
inline constexpr std::uint8_t full_size = 7;
inline constexpr std::uint8_t object_id = 8;
inline constexpr std::uint8_t sector_size = 11;
}  // namespace fs_info

// 2.2.33
namespace query_directory_flags {
inline constexpr std::uint8_t restart_scans = 0x01;
inline constexpr std::uint8_t return_single_entry = 0x02;
inline constexpr std::uint8_t index_specified = 0x04;
inline constexpr std::uint8_t reopen = 0x10;
}  // namespace query_directory_flags

// 2.2.15, 2.2.19, 2.2.21
inline constexpr std::uint16_t kClosePostQueryAttributes = 1;
inline constexpr std::uint8_t kReadUnbuffered = 0x01;
inline constexpr std::uint8_t kReadCompressed = 0x02;
inline constexpr std::uint32_t kWriteThrough = 0x01;
inline constexpr std::uint32_t kWriteUnbuffered = 0x02;

// 2.2.26.1
namespace lock_flags {
inline constexpr std::uint32_t shared = 0x01;
inline constexpr std::uint32_t exclusive = 0x02;
inline constexpr std::uint32_t unlock = 0x04;
inline constexpr std::uint32_t fail_immediately = 0x10;
}  // namespace lock_flags

// [MS-FSCC] 2.4.27 and others: a file's properties in the responses to CREATE and CLOSE. Times are FILETIMEs,
// in 100 ns.
struct FileTimes {
  std::uint64_t creation = 0;
  std::uint64_t last_access = 0;
  std::uint64_t last_write = 0;
  std::uint64_t change = 0;
};

}  // namespace longhaul::smb::smb2
