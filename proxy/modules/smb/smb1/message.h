// SPDX-License-Identifier: Apache-2.0
// One SMB1 message on the wire: the header and the following blocks of words and bytes, several if commands
// are chained by AndX. records.h and transactions.h parse the words.
#pragma once
#include <vector>

#include "codecs/bytes.h"
#include "proxy/modules/smb/errors.h"

namespace longhaul::smb::smb1 {

// [MS-CIFS] 2.2.2.1
enum class Command : std::uint8_t {
  create_directory = 0x00,
  delete_directory = 0x01,
  open = 0x02,
  create = 0x03,
  close = 0x04,
  flush = 0x05,
  remove = 0x06,
  rename = 0x07,
  query_information = 0x08,
  set_information = 0x09,
  read = 0x0A,
  write = 0x0B,
  lock_byte_range = 0x0C,
  unlock_byte_range = 0x0D,
  create_temporary = 0x0E,
  create_new = 0x0F,
  check_directory = 0x10,
  process_exit = 0x11,
  seek = 0x12,
  lock_and_read = 0x13,
  write_and_unlock = 0x14,
  read_raw = 0x1A,
  read_mpx = 0x1B,
  read_mpx_secondary = 0x1C,
  write_raw = 0x1D,
  write_mpx = 0x1E,
  write_mpx_secondary = 0x1F,
  write_complete = 0x20,
  query_server = 0x21,
  set_information2 = 0x22,
  query_information2 = 0x23,
  locking_andx = 0x24,
  transaction = 0x25,
  transaction_secondary = 0x26,
  ioctl = 0x27,
  ioctl_secondary = 0x28,
  copy = 0x29,
  move = 0x2A,
  echo = 0x2B,
  write_and_close = 0x2C,
  open_andx = 0x2D,
  read_andx = 0x2E,
  write_andx = 0x2F,
  trans2 = 0x32,
  trans2_secondary = 0x33,
  find_close2 = 0x34,
  find_notify_close = 0x35,
  tree_connect = 0x70,
  tree_disconnect = 0x71,
  negotiate = 0x72,
  session_setup_andx = 0x73,
  logoff_andx = 0x74,
  tree_connect_andx = 0x75,
  query_information_disk = 0x80,
  search = 0x81,
  find = 0x82,
  find_unique = 0x83,
  find_close = 0x84,
  nt_transact = 0xA0,
  nt_transact_secondary = 0xA1,
  nt_create_andx = 0xA2,
  nt_cancel = 0xA4,
  nt_rename = 0xA5,
  open_print_file = 0xC0,
  write_print_file = 0xC1,
  close_print_file = 0xC2,
  no_andx_command = 0xFF,
};

inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::uint16_t kBreakMid = 0xFFFF;  // [MS-CIFS] 2.2.4.32.1: requests sent by the server

// [MS-CIFS] 2.2.3.1
inline constexpr std::uint8_t kCaseInsensitive = 0x08, kReply = 0x80;  // Flags
inline constexpr std::uint16_t kLongNames = 0x0001, kSigned = 0x0004,  // Flags2
    kExtendedSecurity = 0x0800, kDfs = 0x1000, kNtStatus = 0x4000, kUnicode = 0x8000;

struct Header {
  Command command{};
  std::uint32_t status = 0;  // NTSTATUS, or class, 0 and code of a DOS error: zero is success in both
  std::uint8_t flags = 0;
  std::uint16_t flags2 = 0;
  std::uint32_t pid = 0;
  std::uint16_t tid = 0;
  std::uint16_t uid = 0;
  std::uint16_t mid = 0;

  bool is_reply() const { return (flags & kReply) != 0; }
  bool ignores_case() const { return (flags & kCaseInsensitive) != 0; }
  bool is_signed() const { return (flags2 & kSigned) != 0; }
  bool is_unicode() const { return (flags2 & kUnicode) != 0; }
  bool is_dfs() const { return (flags2 & kDfs) != 0; }
  bool has_nt_status() const { return (flags2 & kNtStatus) != 0; }
};

// A command's parameter words and data bytes. READ_ANDX replies and WRITE_ANDX requests may carry more than
// the 65,535 that ByteCount can express ([MS-SMB] 2.2.4.2.2, 2.2.4.3.1): there `bytes` ends with the message.
struct Block {
  Command command{};
  std::size_t at = 0;  // of WordCount, from the header's start
  Bytes words;
  Bytes bytes;
  std::size_t bytes_at = 0;  // of `bytes`, from the header's start
  std::size_t word_count() const { return words.size() / 2; }
};

struct Message {
  Bytes all;
  Header header;
  std::vector<Block> blocks;  // at least one

  const Block& first() const { return blocks.front(); }
  bool is_chained() const { return blocks.size() > 1; }
  // The bytes at an offset from the header's start, with the given length.
  Result<Bytes> range(std::size_t offset, std::size_t length) const;
};

Result<Header> parse_header(Bytes message);
// `message` is one whole frame without its length.
Result<Message> parse_message(Bytes message);

bool is_andx(Command command);

}  // namespace longhaul::smb::smb1
