// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/message.h"

#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

namespace {

constexpr std::size_t kMaxChain = 16;  // no client chains more than four

// [MS-SMB] 2.2.4.9.2: the extended response to NT_CREATE_ANDX has 50 words, but states 42.
constexpr std::size_t kExtendedCreateSaid = 42, kExtendedCreateWords = 50;

bool outgrows_byte_count(const Header& header, Command command) {
  return command == (header.is_reply() ? Command::read_andx : Command::write_andx);
}

Result<Block> parse_block(Bytes message, const Header& header, Command command, std::size_t at) {
  if (at >= message.size()) return make_error_code(Error::malformed_record);
  std::size_t word_count = u8_at(message, at);
  if (command == Command::nt_create_andx && header.is_reply() && word_count == kExtendedCreateSaid)
    word_count = kExtendedCreateWords;
  const std::size_t words_at = at + 1;
  const std::size_t bytes_at = words_at + 2 * word_count + 2;
  if (bytes_at > message.size()) return make_error_code(Error::malformed_record);
  const std::size_t rest = message.size() - bytes_at;
  std::size_t byte_count = u16_at(message, bytes_at - 2);
  if (outgrows_byte_count(header, command)) byte_count = rest;
  if (byte_count > rest) return make_error_code(Error::malformed_record);
  return Block{command, at, message.subspan(words_at, 2 * word_count), message.subspan(bytes_at, byte_count),
               bytes_at};
}

}  // namespace

bool is_andx(Command command) {
  switch (command) {
    case Command::locking_andx:
    case Command::open_andx:
    case Command::read_andx:
    case Command::write_andx:
    case Command::session_setup_andx:
    case Command::logoff_andx:
    case Command::tree_connect_andx:
    case Command::nt_create_andx:
      return true;
    default:
      return false;
  }
}

Result<Bytes> Message::range(std::size_t offset, std::size_t length) const {
  if (offset > all.size() || length > all.size() - offset) return make_error_code(Error::malformed_record);
  return all.subspan(offset, length);
}

// [MS-CIFS] 2.2.3.1
Result<Header> parse_header(Bytes message) {
  if (message.size() < kHeaderBytes || u32_at(message, 0) != 0x424D53FF)
    return make_error_code(Error::malformed_header);
  Header header;
  header.command = static_cast<Command>(u8_at(message, 4));
  header.status = u32_at(message, 5);
  header.flags = u8_at(message, 9);
  header.flags2 = u16_at(message, 10);
  header.pid = std::uint32_t{u16_at(message, 12)} << 16 | u16_at(message, 26);
  header.tid = u16_at(message, 24);
  header.uid = u16_at(message, 28);
  header.mid = u16_at(message, 30);
  return header;
}

Result<Message> parse_message(Bytes message) {
  const auto header = parse_header(message);
  if (!header) return header.error();
  Message parsed{message, *header, {}};
  Command command = header->command;
  for (std::size_t at = kHeaderBytes;;) {
    const auto block = parse_block(message, *header, command, at);
    if (!block) return block.error();
    parsed.blocks.push_back(*block);
    // [MS-CIFS] 2.2.3.4: AndXCommand, AndXReserved, AndXOffset. An error response has no words and ends
    // there.
    if (!is_andx(command) || block->words.size() < 4) return parsed;
    command = static_cast<Command>(u8_at(block->words, 0));
    if (command == Command::no_andx_command) return parsed;
    const std::size_t next = u16_at(block->words, 2);
    if (header->is_reply() && next == 0) return parsed;
    if (next < block->bytes_at || parsed.blocks.size() == kMaxChain)
      return make_error_code(Error::malformed_header);
    at = next;
  }
}

}  // namespace longhaul::smb::smb1
