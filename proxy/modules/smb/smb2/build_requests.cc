// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/build_requests.h"

#include <algorithm>
#include <cassert>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/frame_writer.h"

namespace longhaul::smb::smb2 {
namespace {

Header request_header(Command command, const RequestHead& head) {
  Header header;
  header.command = command;
  header.credit_charge = head.credit_charge;
  header.credits = head.credit_request;
  header.channel_sequence = head.channel_sequence;
  header.message_id = head.message_id;
  header.process_id = head.process_id;
  header.tree_id = head.tree_id;
  header.session_id = head.session_id;
  return header;
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

// 2.2.13.2: the name after the head of sixteen bytes, the data after it at a multiple of eight.
void write_contexts(FrameWriter& out, const CreateContexts& contexts) {
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const CreateContext& context = contexts[i];
    const std::size_t data_at = aligned(16 + context.name.size());
    const bool last = i + 1 == contexts.size();
    out.u32(last ? 0 : static_cast<std::uint32_t>(aligned(data_at + context.data.size())));
    out.u16(16);
    out.u16(static_cast<std::uint16_t>(context.name.size()));
    out.u16(0);
    out.u16(context.data.empty() ? std::uint16_t{0} : static_cast<std::uint16_t>(data_at));
    out.u32(static_cast<std::uint32_t>(context.data.size()));
    out.bytes(context.name);
    out.align8();
    out.bytes(context.data);
    if (!last) out.align8();
  }
}

Slice header_only_request(Command command, const RequestHead& head) {
  FrameWriter out(request_header(command, head));
  out.u16(4);
  out.u16(0);
  return out.finish();
}

}  // namespace

RequestHead head_of(const Header& request) {
  return {.message_id = request.message_id,
          .credit_charge = request.credit_charge,
          .credit_request = request.credits,
          .tree_id = request.tree_id,
          .session_id = request.session_id,
          .channel_sequence = request.channel_sequence,
          .process_id = request.process_id};
}

// 2.2.13
Slice build_create_request(const RequestHead& head, const CreateRequest& request) {
  constexpr std::uint16_t kBufferAt = kHeaderBytes + 56;
  FrameWriter out(request_header(Command::create, head));
  FrameWriter list(Header{});
  write_contexts(list, request.contexts);
  const std::size_t contexts_bytes = list.offset() - kHeaderBytes;
  const std::size_t contexts_at = aligned(kBufferAt + request.name.size());
  out.u16(57);
  out.u8(0);
  out.u8(static_cast<std::uint8_t>(request.oplock));
  out.u32(request.impersonation);
  out.zeros(16);
  out.u32(request.desired_access);
  out.u32(request.file_attributes);
  out.u32(request.share_access);
  out.u32(static_cast<std::uint32_t>(request.disposition));
  out.u32(request.options);
  out.u16(kBufferAt);
  out.u16(static_cast<std::uint16_t>(request.name.size()));
  out.u32(contexts_bytes == 0 ? 0 : static_cast<std::uint32_t>(contexts_at));
  out.u32(static_cast<std::uint32_t>(contexts_bytes));
  out.bytes(request.name);
  if (contexts_bytes > 0) {
    out.align8();
    write_contexts(out, request.contexts);
  } else if (request.name.empty()) {
    out.zeros(8);  // the buffer is never empty
  }
  return out.finish();
}

Slice without_contexts(Bytes element, std::span<const std::string_view> names) {
  constexpr std::size_t kFixedBytes = 56;  // of the body; the name and the contexts follow
  constexpr std::size_t kNameAt = kHeaderBytes + 44, kContextsAt = kHeaderBytes + 48;
  const auto request = parse_create_request(element);
  assert(request);
  CreateContexts kept;
  for (const CreateContext& context : request->contexts)
    if (std::find(names.begin(), names.end(), as_text(context.name)) == names.end()) kept.push_back(context);

  Buffer fixed(element.begin(), element.begin() + kHeaderBytes + kFixedBytes);
  FrameWriter rest(Header{});  // only for what follows the fixed part, aligned as it will be there
  rest.zeros(kFixedBytes);
  rest.bytes(request->name);
  std::size_t contexts_at = 0, contexts_bytes = 0;
  if (!kept.empty()) {
    rest.align8();
    contexts_at = rest.offset();
    write_contexts(rest, kept);
    contexts_bytes = rest.offset() - contexts_at;
  } else if (request->name.empty()) {
    rest.zeros(8);  // the buffer is never empty
  }
  store_le(fixed.data() + kNameAt, static_cast<std::uint16_t>(fixed.size()));
  store_le(fixed.data() + kContextsAt, static_cast<std::uint32_t>(contexts_at));
  store_le(fixed.data() + kContextsAt + 4, static_cast<std::uint32_t>(contexts_bytes));
  return rest.finish_behind(fixed);
}

// 2.2.15
Slice build_close_request(const RequestHead& head, const CloseRequest& request) {
  FrameWriter out(request_header(Command::close, head));
  out.u16(24);
  out.u16(request.flags);
  out.u32(0);
  out.file_id(request.file);
  return out.finish();
}

// 2.2.19
Slice build_read_request(const RequestHead& head, const ReadRequest& request) {
  FrameWriter out(request_header(Command::read, head));
  out.u16(49);
  out.u8(request.padding);
  out.u8(request.flags);
  out.u32(request.length);
  out.u64(request.offset);
  out.file_id(request.file);
  out.u32(request.minimum_count);
  out.u32(0);
  out.u32(request.remaining_bytes);
  out.u32(0);
  out.u8(0);  // the buffer is never empty
  return out.finish();
}

// 2.2.33
Slice build_query_directory_request(const RequestHead& head, const QueryDirectoryRequest& request) {
  FrameWriter out(request_header(Command::query_directory, head));
  out.u16(33);
  out.u8(request.info_class);
  out.u8(request.flags);
  out.u32(request.file_index);
  out.file_id(request.file);
  out.u16(kHeaderBytes + 32);
  out.u16(static_cast<std::uint16_t>(request.pattern.size()));
  out.u32(request.output_bytes);
  out.bytes(request.pattern);
  if (request.pattern.empty()) out.u8(0);
  return out.finish();
}

// 2.2.37
Slice build_query_info_request(const RequestHead& head, const QueryInfoRequest& request) {
  FrameWriter out(request_header(Command::query_info, head));
  out.u16(41);
  out.u8(static_cast<std::uint8_t>(request.type));
  out.u8(request.info_class);
  out.u32(request.output_bytes);
  out.u16(request.input.empty() ? 0 : kHeaderBytes + 40);
  out.u16(0);
  out.u32(static_cast<std::uint32_t>(request.input.size()));
  out.u32(request.additional);
  out.u32(request.flags);
  out.file_id(request.file);
  out.bytes(request.input);
  if (request.input.empty()) out.u8(0);
  return out.finish();
}

// 2.2.35
Slice build_change_notify_request(const RequestHead& head, const ChangeNotifyRequest& request) {
  FrameWriter out(request_header(Command::change_notify, head));
  out.u16(32);
  out.u16(request.watch_tree ? 1 : 0);
  out.u32(request.output_bytes);
  out.file_id(request.file);
  out.u32(request.filter);
  out.u32(0);
  return out.finish();
}

// 2.2.28
Slice build_echo_request(const RequestHead& head) { return header_only_request(Command::echo, head); }

// 2.2.31
Slice build_query_interfaces_request(const RequestHead& head) {
  constexpr std::uint32_t kMostOutput = kCreditBytes;
  FrameWriter out(request_header(Command::ioctl, head));
  out.u16(57);
  out.u16(0);
  out.u32(fsctl::query_network_interface_info);
  out.u64(~std::uint64_t{0}), out.u64(~std::uint64_t{0});  // no file
  out.zeros(20);                                           // no input; OutputOffset, OutputCount
  out.u32(kMostOutput);
  out.u32(kIoctlIsFsctl);
  out.u32(0);
  out.u8(0);
  return out.finish();
}

// 2.2.24.1
Slice build_oplock_acknowledgement(const RequestHead& head, const OplockBreak& acknowledgement) {
  FrameWriter out(request_header(Command::oplock_break, head));
  out.u16(24);
  out.u8(static_cast<std::uint8_t>(acknowledgement.level));
  out.zeros(5);
  out.file_id(acknowledgement.file);
  return out.finish();
}

// 2.2.24.2
Slice build_lease_acknowledgement(const RequestHead& head, const LeaseBreakAcknowledgement& acknowledgement) {
  FrameWriter out(request_header(Command::oplock_break, head));
  out.u16(36);
  out.u16(0);
  out.u32(acknowledgement.flags);
  out.bytes(acknowledgement.key);
  out.u32(acknowledgement.state);
  out.u64(0);
  return out.finish();
}

}  // namespace longhaul::smb::smb2
