// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/records.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

namespace {

constexpr std::uint16_t kDiskFile = 0;  // ResourceType, [MS-CIFS] 2.2.4.64.2
constexpr std::uint32_t kDirectoryAttribute = 0x10;
constexpr std::uint16_t kOplockGranted = 0x8000;  // OpenResults, [MS-CIFS] 2.2.4.41.2

boost::system::error_code wrong_words() { return Error::malformed_record; }

}  // namespace

Result<NegotiateRequest> parse_negotiate_request(const Block& block) {
  NegotiateRequest request;
  std::string_view rest = as_text(block.bytes);
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    if (rest[0] != 2 || end == rest.npos) return wrong_words();  // BufferFormat: a dialect string
    request.dialects.push_back(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
  }
  return request;
}

Result<NegotiateReply> parse_negotiate_reply(const Block& block) {
  NegotiateReply reply;
  if (block.words.size() < 2) return wrong_words();
  reply.dialect = u16_at(block.words, 0);
  if (block.word_count() != 17) return reply;
  reply.nt_lm_012 = true;
  reply.security_mode = u8_at(block.words, 2);
  reply.max_mpx = u16_at(block.words, 3);
  reply.max_buffer = u32_at(block.words, 7);
  reply.capabilities = u32_at(block.words, 19);
  // A FILETIME: 100 ns since 1601.
  reply.system_time = std::chrono::sys_days{std::chrono::year{1601} / 1 / 1} +
                      std::chrono::seconds(u64_at(block.words, 23) / 10'000'000);
  reply.time_zone = std::chrono::minutes(static_cast<std::int16_t>(u16_at(block.words, 31)));
  return reply;
}

Result<SessionSetupRequest> parse_session_setup_request(const Block& block) {
  if (block.word_count() != 12 && block.word_count() != 13) return wrong_words();
  SessionSetupRequest request;
  request.max_buffer = u16_at(block.words, 4);
  request.max_mpx = u16_at(block.words, 6);
  request.capabilities = u32_at(block.words, block.word_count() == 13 ? 22 : 20);
  if (block.word_count() == 12) {
    const std::size_t size = u16_at(block.words, 14);
    if (size > block.bytes.size()) return wrong_words();
    request.security = block.bytes.first(size);
  }
  return request;
}

Result<SessionSetupReply> parse_session_setup_reply(const Block& block) {
  if (block.word_count() != 4) return wrong_words();
  const std::size_t size = u16_at(block.words, 6);
  if (size > block.bytes.size()) return wrong_words();
  return SessionSetupReply{.is_guest = (u16_at(block.words, 4) & 1) != 0,
                           .security = block.bytes.first(size)};
}

Result<TreeConnectRequest> parse_tree_connect_request(const Block& block, const Header& header) {
  if (block.words.size() < 8) return wrong_words();
  std::size_t at = u16_at(block.words, 6);  // after the password
  if (header.is_unicode() && (block.bytes_at + at) % 2) ++at;
  if (at > block.bytes.size()) return wrong_words();
  return TreeConnectRequest{block.bytes.subspan(at)};
}

Result<TreeConnectReply> parse_tree_connect_reply(const Block& block) {
  if (block.words.size() < 4) return wrong_words();
  // The service is in the OEM character set even if names are Unicode.
  return TreeConnectReply{as_text(block.bytes).starts_with(std::string_view("A:\0", 3))};
}

Result<NtCreateRequest> parse_nt_create_request(const Block& block, const Header& header) {
  if (block.word_count() != 24) return wrong_words();
  NtCreateRequest request;
  const std::size_t name_bytes = u16_at(block.words, 5);
  request.flags = u32_at(block.words, kNtCreateFlagsAt);
  request.root_fid = u32_at(block.words, 11);
  request.access = u32_at(block.words, 15);
  request.share = u32_at(block.words, 31);
  request.disposition = u32_at(block.words, 35);
  request.options = u32_at(block.words, 39);
  // A Unicode name begins at an even offset of the message.
  const std::size_t pad = header.is_unicode() && block.bytes_at % 2 ? 1 : 0;
  const Bytes names = block.bytes.subspan(std::min(pad, block.bytes.size()));
  request.name = names.first(
      std::min(name_bytes, names.size()));  // some clients count the terminator, some do not send it
  return request;
}

Result<OpenedFile> parse_nt_create_reply(const Block& block) {
  if (block.word_count() < 34) return wrong_words();
  OpenedFile file;
  const std::uint8_t oplock = u8_at(block.words, kNtCreateOplockAt);
  if (oplock > 3) return wrong_words();
  file.oplock = static_cast<Oplock>(oplock);
  file.fid = u16_at(block.words, 5);
  file.attributes = u32_at(block.words, 43);
  file.end_of_file = u64_at(block.words, 55);
  file.is_disk_file = u16_at(block.words, 63) == kDiskFile && u8_at(block.words, 67) == 0;
  return file;
}

Result<OpenRequest> parse_open_request(const Block& block) {
  if (block.word_count() != 15) return wrong_words();
  return OpenRequest{u16_at(block.words, 4), u16_at(block.words, 6), u16_at(block.words, 16)};
}

Result<OpenedFile> parse_open_reply(const Block& block, std::uint16_t asked) {
  if (block.word_count() < 15) return wrong_words();
  OpenedFile file;
  file.fid = u16_at(block.words, 4);
  file.attributes = u16_at(block.words, 6);
  file.end_of_file = u32_at(block.words, 12);
  file.is_disk_file = u16_at(block.words, 18) == kDiskFile && (file.attributes & kDirectoryAttribute) == 0;
  if (u16_at(block.words, 22) & kOplockGranted)
    file.oplock = asked & 0x4 ? Oplock::batch : asked & 0x2 ? Oplock::exclusive : Oplock::none;
  return file;
}

Result<FileTimeAndSize> parse_query_information2_reply(const Block& block) {
  if (block.word_count() != 11) return wrong_words();
  return FileTimeAndSize{u32_at(block.words, 8), u32_at(block.words, 12)};
}

std::optional<std::chrono::local_seconds> moment_of(std::uint32_t date_and_time) {
  const std::uint32_t date = date_and_time & 0xFFFF, time = date_and_time >> 16;
  const auto day = std::chrono::year{1980 + static_cast<int>(date >> 9)} /
                   std::chrono::month{date >> 5 & 0xF} / std::chrono::day{date & 0x1F};
  if (!day.ok()) return std::nullopt;
  return std::chrono::local_days{day} + std::chrono::hours(time >> 11) +
         std::chrono::minutes(time >> 5 & 0x3F) + std::chrono::seconds(2 * (time & 0x1F));
}

Result<CloseRequest> parse_close_request(const Block& block) {
  if (block.word_count() != 3) return wrong_words();
  return CloseRequest{u16_at(block.words, 0), u32_at(block.words, 2)};
}

Result<ReadRequest> parse_read_request(const Block& block) {
  if (block.word_count() != 10 && block.word_count() != 12) return wrong_words();
  ReadRequest request;
  request.fid = u16_at(block.words, 4);
  request.offset = u32_at(block.words, 6);
  if (block.word_count() == 12) request.offset |= std::uint64_t{u32_at(block.words, 20)} << 32;
  request.length = u16_at(block.words, 10);
  // [MS-SMB] 2.2.4.2.1: MaxCountHigh, all ones where the field is a time-out (pipes).
  if (u16_at(block.words, 14) != 0xFFFF) request.length |= std::uint32_t{u16_at(block.words, 14)} << 16;
  return request;
}

Result<ReadReply> parse_read_reply(const Message& message, const Block& block) {
  if (block.word_count() != 12) return wrong_words();
  const std::size_t length = u16_at(block.words, 10) | std::size_t{u16_at(block.words, 14)} << 16;
  if (length == 0) return ReadReply{};
  const auto data = message.range(u16_at(block.words, 12), length);
  if (!data) return data.error();
  return ReadReply{*data};
}

Result<WriteRequest> parse_write_request(const Message& message, const Block& block) {
  if (block.word_count() != 12 && block.word_count() != 14) return wrong_words();
  WriteRequest request;
  request.fid = u16_at(block.words, 4);
  request.offset = u32_at(block.words, 6);
  if (block.word_count() == 14) request.offset |= std::uint64_t{u32_at(block.words, 24)} << 32;
  request.mode = u16_at(block.words, 14);
  const std::size_t length = u16_at(block.words, 20) | std::size_t{u16_at(block.words, 18)} << 16;
  if (length == 0) return request;
  const auto data = message.range(u16_at(block.words, 22), length);
  if (!data) return data.error();
  request.data = *data;
  return request;
}

Result<WriteReply> parse_write_reply(const Block& block) {
  if (block.word_count() != 6) return wrong_words();
  return WriteReply{u16_at(block.words, 4) | std::uint32_t{u16_at(block.words, 8)} << 16};
}

Result<LockingRequest> parse_locking_request(const Block& block) {
  if (block.word_count() != 8) return wrong_words();
  return LockingRequest{u16_at(block.words, 4), u8_at(block.words, 6), u8_at(block.words, 7),
                        u16_at(block.words, 12), u16_at(block.words, 14)};
}

std::optional<std::uint16_t> fid_of(const Block& block) {
  std::size_t at = 0;
  switch (block.command) {
    case Command::locking_andx:
    case Command::read_andx:
    case Command::write_andx:
      at = 4;  // after AndXCommand and AndXOffset
      break;
    case Command::close:
    case Command::flush:
    case Command::read:
    case Command::write:
    case Command::lock_byte_range:
    case Command::unlock_byte_range:
    case Command::seek:
    case Command::lock_and_read:
    case Command::write_and_unlock:
    case Command::read_raw:
    case Command::read_mpx:
    case Command::write_raw:
    case Command::write_mpx:
    case Command::set_information2:
    case Command::query_information2:
    case Command::ioctl:
    case Command::write_and_close:
    case Command::write_print_file:
    case Command::close_print_file:
      break;
    default:
      return std::nullopt;
  }
  if (block.words.size() < at + 2) return std::nullopt;
  return u16_at(block.words, at);
}

}  // namespace longhaul::smb::smb1
