// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/header.h"

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

// The first four bytes, as a little-endian number.
constexpr std::uint32_t protocol_id(std::uint8_t first) { return first | 0x424D5300u; }  // 'S', 'M', 'B'
constexpr std::uint32_t kMessage = protocol_id(0xFE);
constexpr std::uint32_t kTransform = protocol_id(0xFD);
constexpr std::uint32_t kCompression = protocol_id(0xFC);
constexpr std::size_t kSignatureBytes = 16;
constexpr std::size_t kNonceBytes = 16;

}  // namespace

// 2.2.1
Result<Header> parse_header(Bytes message) {
  LittleEndianReader in(message);
  if (in.u32() != kMessage || in.u16() != kHeaderBytes) return Error::malformed_header;
  Header header;
  header.credit_charge = in.u16();
  const std::uint32_t status_or_channel = in.u32();
  const std::uint16_t command = in.u16();
  header.credits = in.u16();
  const std::uint32_t flags = in.u32();
  header.flags = flags & ~kArrivalFlags;
  header.arrival = flags & kArrivalFlags;
  header.next_command = in.u32();
  header.message_id = MessageId{in.u64()};
  if (header.is_async()) {
    header.async_id = in.u64();
  } else {
    header.process_id = in.u32();
    header.tree_id = in.u32();
  }
  header.session_id = in.u64();
  in.skip(kSignatureBytes);
  if (!in.ok()) return Error::malformed_header;
  header.command = static_cast<Command>(command);
  if (header.is_response()) {
    header.status = static_cast<Status>(status_or_channel);
  } else {
    header.channel_sequence = static_cast<std::uint16_t>(status_or_channel & 0xffff);
  }
  return header;
}

void write_header(const Header& header, Buffer& buffer) {
  LittleEndianWriter out(buffer);
  out.u32(kMessage);
  out.u16(kHeaderBytes);
  out.u16(header.credit_charge);
  out.u32(header.is_response() ? static_cast<std::uint32_t>(header.status) : header.channel_sequence);
  out.u16(static_cast<std::uint16_t>(header.command));
  out.u16(header.credits);
  out.u32(header.flags);
  out.u32(header.next_command);
  out.u64(header.message_id.number());
  if (header.is_async()) {
    out.u64(header.async_id);
  } else {
    out.u32(header.process_id);
    out.u32(header.tree_id);
  }
  out.u64(header.session_id);
  out.zeros(kSignatureBytes);
}

// 3.3.5.2.7: each element except the last ends where NextCommand states, at a multiple of eight.
Result<Elements> parse_elements(Bytes message) {
  Elements elements;
  for (std::size_t offset = 0;;) {
    const Bytes rest = message.subspan(offset);
    auto header = parse_header(rest);
    if (!header) return header.error();
    const std::size_t next = header->next_command;
    if (next == 0) {
      elements.push_back({*header, rest, offset});
      return elements;
    }
    if (next < kHeaderBytes || next % 8 != 0 || next >= rest.size() || elements.size() + 1 == kMaxElements)
      return Error::malformed_header;
    elements.push_back({*header, rest.first(next), offset});
    offset += next;
  }
}

// 3.3.4.4. An ERROR response has the structure size 9, like some other responses: for those the status
// decides.
bool has_answer(const Element& response) {
  const Header& header = response.header;
  const auto structure_is = [&](std::uint16_t bytes) {
    return response.body().size() >= 2 && load_le<std::uint16_t>(response.body(), 0) == bytes;
  };
  if (header.status == Status::success) return true;
  switch (header.command) {
    case Command::session_setup:
      return header.status == Status::more_processing_required;
    case Command::query_info:
      return header.status == Status::buffer_overflow;
    case Command::read:
      return header.status == Status::buffer_overflow && structure_is(17);
    case Command::change_notify:
      return header.status == Status::notify_enum_dir;
    case Command::ioctl:  // more than the specification lists: Samba always answers a failed COPYCHUNK with
                          // this status
      return structure_is(49);
    default:
      return false;
  }
}

// 2.2.41
Result<TransformHeader> parse_transform_header(Bytes message) {
  LittleEndianReader in(message);
  if (in.u32() != kTransform) return Error::malformed_header;
  in.skip(kSignatureBytes + kNonceBytes);
  TransformHeader header;
  header.original_message_bytes = in.u32();
  in.skip(2);
  header.flags = in.u16();
  header.session_id = in.u64();
  if (!in.ok()) return Error::malformed_header;
  return header;
}

// 2.2.42.1 and 2.2.42.2: the first eight bytes, and the head of the first payload when chained, have the same
// layout.
Result<CompressionHeader> parse_compression_header(Bytes message) {
  LittleEndianReader in(message);
  if (in.u32() != kCompression) return Error::malformed_header;
  CompressionHeader header;
  header.original_bytes = in.u32();
  header.algorithm = in.u16();
  header.chained = in.u16() == 1;
  header.offset_or_length = in.u32();
  if (!in.ok()) return Error::malformed_header;
  return header;
}

}  // namespace longhaul::smb::smb2
