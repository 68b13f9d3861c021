// SPDX-License-Identifier: Apache-2.0
// The words of SMB1's commands, as far as the halves need them: sessions, trees, files, reads, writes, locks.
// Parsers only; transactions.h has transactions, builders.h the messages built here.
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

#include "proxy/modules/smb/smb1/message.h"

namespace longhaul::smb::smb1 {

// [MS-CIFS] 2.2.4.52.1: dialect strings in the client's order.
struct NegotiateRequest {
  std::vector<std::string_view> dialects;
};
Result<NegotiateRequest> parse_negotiate_request(const Block& block);

// [MS-CIFS] 2.2.4.52.2, [MS-SMB] 2.2.4.5.2
inline constexpr std::uint32_t kCapRawMode = 0x1, kCapMpxMode = 0x2, kCapUnicode = 0x4, kCapLargeFiles = 0x8,
                               kCapNtSmbs = 0x10, kCapNtStatus = 0x40, kCapLevel2Oplocks = 0x80,
                               kCapLargeReadX = 0x4000, kCapLargeWriteX = 0x8000, kCapUnix = 0x800000;
inline constexpr std::uint8_t kSigningEnabled = 0x4, kSigningRequired = 0x8;  // SecurityMode
struct NegotiateReply {
  std::uint16_t dialect = 0xFFFF;  // index in the request; 0xFFFF: none
  bool nt_lm_012 = false;          // the fields below are set
  std::uint8_t security_mode = 0;
  std::uint16_t max_mpx = 1;
  std::uint32_t max_buffer = 0;
  std::uint32_t capabilities = 0;
  std::chrono::sys_seconds system_time{};
  std::chrono::minutes time_zone{};  // offset of its local time from UTC
};
Result<NegotiateReply> parse_negotiate_reply(const Block& block);

// [MS-CIFS] 2.2.4.53.1 (13 words), [MS-SMB] 2.2.4.6.1 (12 words: extended security)
struct SessionSetupRequest {
  std::uint16_t max_buffer = 0;
  std::uint16_t max_mpx = 0;
  std::uint32_t capabilities = 0;
  std::optional<Bytes> security;  // with extended security
};
Result<SessionSetupRequest> parse_session_setup_request(const Block& block);

// [MS-SMB] 2.2.4.6.2 (4 words)
struct SessionSetupReply {
  bool is_guest = false;
  Bytes security;
};
Result<SessionSetupReply> parse_session_setup_reply(const Block& block);

// [MS-CIFS] 2.2.4.55.1
struct TreeConnectRequest {
  Bytes path;  // as received, including its end and the service after it
};
Result<TreeConnectRequest> parse_tree_connect_request(const Block& block, const Header& header);

// [MS-CIFS] 2.2.4.55.2
struct TreeConnectReply {
  bool is_disk = false;  // the service is "A:"
};
Result<TreeConnectReply> parse_tree_connect_reply(const Block& block);

enum class Oplock : std::uint8_t {
  none = 0,
  exclusive = 1,
  batch = 2,
  level2 = 3
};  // as in the NT_CREATE_ANDX response

// [MS-CIFS] 2.2.4.64.1
inline constexpr std::uint32_t kRequestOplock = 0x2, kRequestBatch = 0x4, kOpenTargetDirectory = 0x8,
                               kExtendedAnswer = 0x10;  // Flags
// [MS-CIFS] 2.2.4.64.1, [MS-DTYP] 2.4.3: rights
inline constexpr std::uint32_t kReadData = 0x1, kWriteData = 0x2, kAppendData = 0x4, kExecute = 0x20,
                               kReadAttributes = 0x80, kWriteAttributes = 0x100, kDelete = 0x10000,
                               kSynchronize = 0x100000, kMaximumAllowed = 0x02000000,
                               kGenericAll = 0x10000000, kGenericExecute = 0x20000000,
                               kGenericWrite = 0x40000000, kGenericRead = 0x80000000;
inline constexpr std::uint32_t kOptionDirectory = 0x1, kOptionWriteThrough = 0x2, kOptionSequential = 0x4,
                               kOptionNoBuffering = 0x8, kOptionRandom = 0x800, kOptionDeleteOnClose = 0x1000;
enum class Disposition : std::uint32_t { supersede, open, create, open_if, overwrite, overwrite_if };
struct NtCreateRequest {
  std::uint32_t flags = 0;
  std::uint32_t root_fid = 0;
  std::uint32_t access = 0;
  std::uint32_t share = 0;
  std::uint32_t disposition = 0;
  std::uint32_t options = 0;
  Bytes name;  // as received, including its end if the client sent one
};
inline constexpr std::size_t kNtCreateFlagsAt = 7;  // in the words
Result<NtCreateRequest> parse_nt_create_request(const Block& block, const Header& header);

struct OpenedFile {  // of NT_CREATE_ANDX and OPEN_ANDX
  std::uint16_t fid = 0;
  Oplock oplock = Oplock::none;
  std::uint32_t attributes = 0;
  std::uint64_t end_of_file = 0;  // OPEN_ANDX reports only 32 bits of it
  bool is_disk_file = false;      // not a pipe, printer, device or directory
};
inline constexpr std::size_t kNtCreateOplockAt = 4;  // in the words
// [MS-CIFS] 2.2.4.64.2
Result<OpenedFile> parse_nt_create_reply(const Block& block);

// [MS-CIFS] 2.2.4.41
struct OpenRequest {
  std::uint16_t flags = 0;   // 0x2: exclusive oplock requested, 0x4: batch
  std::uint16_t access = 0;  // AccessMode
  std::uint16_t mode = 0;    // OpenMode
  bool reads() const { return (access & 7) == 0 || (access & 7) == 2 || (access & 7) == 3; }
  bool writes() const { return (access & 7) == 1 || (access & 7) == 2; }
  bool write_through() const { return (access & 0x4000) != 0; }
};
Result<OpenRequest> parse_open_request(const Block& block);
// One bit shows which of the requested oplocks was granted: `asked` are the request's flags.
Result<OpenedFile> parse_open_reply(const Block& block, std::uint16_t asked);

// [MS-CIFS] 2.2.4.31.2
struct FileTimeAndSize {
  std::uint32_t written = 0;  // date and time, in units of two seconds
  std::uint32_t bytes = 0;
};
Result<FileTimeAndSize> parse_query_information2_reply(const Block& block);
// SMB_DATE and SMB_TIME ([MS-CIFS] 2.2.1.4), in the server's local time. Returns nullopt if it is not a date.
std::optional<std::chrono::local_seconds> moment_of(std::uint32_t date_and_time);

// [MS-CIFS] 2.2.4.5.1
struct CloseRequest {
  std::uint16_t fid = 0;
  std::uint32_t last_write = 0;  // 0 and FFFFFFFF: set by the server
};
Result<CloseRequest> parse_close_request(const Block& block);

// [MS-CIFS] 2.2.4.42.1, [MS-SMB] 2.2.4.2.1
struct ReadRequest {
  std::uint16_t fid = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};
Result<ReadRequest> parse_read_request(const Block& block);
// [MS-CIFS] 2.2.4.42.2, [MS-SMB] 2.2.4.2.2
struct ReadReply {
  Bytes data;
};
Result<ReadReply> parse_read_reply(const Message& message, const Block& block);

// [MS-CIFS] 2.2.4.43.1, [MS-SMB] 2.2.4.3.1
inline constexpr std::uint16_t kWriteThrough = 0x1, kReadBytesAvailable = 0x2, kRawNamedPipe = 0x4,
                               kMessageStart = 0x8;  // WriteMode
struct WriteRequest {
  std::uint16_t fid = 0;
  std::uint64_t offset = 0;
  std::uint16_t mode = 0;
  Bytes data;
};
Result<WriteRequest> parse_write_request(const Message& message, const Block& block);
// [MS-CIFS] 2.2.4.43.2, [MS-SMB] 2.2.4.3.2
struct WriteReply {
  std::uint32_t count = 0;
};
Result<WriteReply> parse_write_reply(const Block& block);

// [MS-CIFS] 2.2.4.32.1
inline constexpr std::uint8_t kOplockRelease = 0x2;  // TypeOfLock
struct LockingRequest {
  std::uint16_t fid = 0;
  std::uint8_t type = 0;
  std::uint8_t oplock_level = 0;  // 0: none is left, 1: level II
  std::uint16_t unlocks = 0;
  std::uint16_t locks = 0;
  bool is_oplock_release() const { return (type & kOplockRelease) != 0; }
};
Result<LockingRequest> parse_locking_request(const Block& block);

// The file of a request that begins with the FID, as in many commands. Returns nullopt if the command does
// not name a file in this way, or has no words.
std::optional<std::uint16_t> fid_of(const Block& block);

}  // namespace longhaul::smb::smb1
