// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/build.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/frames.h"

namespace longhaul::smb::smb2 {
namespace {

// Of longer frames only the changed part is copied.
constexpr std::size_t kCopiedFront = 256;
constexpr std::size_t kCopiedWhole = 2048;

// Fields of the header and of bodies, counted from the element's first byte.
constexpr std::size_t kStatusAt = 8;
constexpr std::size_t kCreditsAt = 14;
constexpr std::size_t kMessageIdAt = 24;
constexpr std::size_t kRequestedOplockAt = kHeaderBytes + 3;
constexpr std::size_t kGrantedOplockAt = kHeaderBytes + 2;

struct OwnBuffer {
  Buffer buffer_;
};

// A frame being written: the four bytes of its head are filled in at the end.
class Writer : private OwnBuffer, public LittleEndianWriter {
 public:
  explicit Writer(const Header& header) : LittleEndianWriter(buffer_) {
    buffer_.reserve(kFrameHeadBytes + kHeaderBytes + 128);
    buffer_.resize(kFrameHeadBytes);
    write_header(header, buffer_);
  }
  // From the element's first byte.
  std::size_t offset() const { return buffer_.size() - kFrameHeadBytes; }
  void file_id(const FileId& id) {
    u64(id.persistent_part);
    u64(id.volatile_part);
  }
  void align8() { zeros((8 - offset() % 8) % 8); }
  // `behind`: bytes that follow outside of this frame's memory but belong to it.
  Slice finish(std::size_t behind = 0) {
    write_frame_head(offset() + behind, buffer_.data());
    return Slice::copy_of(buffer_);
  }
  // Replaces the element's first bytes by `front`.
  Slice finish_behind(Bytes front) {
    std::copy(front.begin(), front.end(), buffer_.begin() + kFrameHeadBytes);
    return finish();
  }
  Slice finish_with(Bytes tail) {
    write_frame_head(offset() + tail.size(), buffer_.data());
    return Slice::joined(buffer_, tail);
  }
};

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

void write_times(Writer& out, const FileTimes& times) {
  out.u64(times.creation);
  out.u64(times.last_access);
  out.u64(times.last_write);
  out.u64(times.change);
}

constexpr std::size_t align8(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

// 2.2.13.2: the name behind the head of sixteen bytes, the data behind it at a multiple of eight.
void write_contexts(Writer& out, const CreateContexts& contexts) {
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const CreateContext& context = contexts[i];
    const std::size_t data_at = align8(16 + context.name.size());
    const bool last = i + 1 == contexts.size();
    out.u32(last ? 0 : static_cast<std::uint32_t>(align8(data_at + context.data.size())));
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
  Writer out(request_header(command, head));
  out.u16(4);
  out.u16(0);
  return out.finish();
}

// 2.2.20: fixed fields, as far as the data.
void write_read_response(Writer& out, std::size_t data_bytes) {
  constexpr std::uint8_t kDataAt = kHeaderBytes + 16;
  out.u16(17);
  out.u8(kDataAt);
  out.u8(0);
  out.u32(static_cast<std::uint32_t>(data_bytes));
  out.u32(0);
  out.u32(0);
}

}  // namespace

// 3.3.4.1: ids, charge and priority come back as they were.
Header answer_to(const Header& request, Status status) {
  Header header = request;
  header.status = status;
  header.channel_sequence = 0;
  header.flags = header_flags::response | (request.flags & header_flags::priority_mask);
  header.credits = request.charge();
  header.next_command = 0;
  header.async_id = 0;
  return header;
}

Slice build_message(const Header& header, Bytes body) { return Writer(header).finish_with(body); }

// 2.2.13
Slice build_create_request(const RequestHead& head, const CreateRequest& request) {
  constexpr std::uint16_t kBufferAt = kHeaderBytes + 56;
  Writer out(request_header(Command::create, head));
  Writer list(Header{});
  write_contexts(list, request.contexts);
  const std::size_t contexts_bytes = list.offset() - kHeaderBytes;
  const std::size_t contexts_at = align8(kBufferAt + request.name.size());
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
  Writer rest(Header{});  // only for what stands behind the fixed part, aligned as it will be there
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
  Writer out(request_header(Command::close, head));
  out.u16(24);
  out.u16(request.flags);
  out.u32(0);
  out.file_id(request.file);
  return out.finish();
}

// 2.2.19
Slice build_read_request(const RequestHead& head, const ReadRequest& request) {
  Writer out(request_header(Command::read, head));
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
  Writer out(request_header(Command::query_directory, head));
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
  Writer out(request_header(Command::query_info, head));
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
  Writer out(request_header(Command::change_notify, head));
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
  Writer out(request_header(Command::ioctl, head));
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
  Writer out(request_header(Command::oplock_break, head));
  out.u16(24);
  out.u8(static_cast<std::uint8_t>(acknowledgement.level));
  out.zeros(5);
  out.file_id(acknowledgement.file);
  return out.finish();
}

// 2.2.24.2
Slice build_lease_acknowledgement(const RequestHead& head, const LeaseBreakAcknowledgement& acknowledgement) {
  Writer out(request_header(Command::oplock_break, head));
  out.u16(36);
  out.u16(0);
  out.u32(acknowledgement.flags);
  out.bytes(acknowledgement.key);
  out.u32(acknowledgement.state);
  out.u64(0);
  return out.finish();
}

// 2.2.2
Slice build_error_response(const Header& head) {
  Writer out(head);
  out.u16(9);
  out.zeros(6);
  out.u8(0);  // one byte of error data though its length is 0
  return out.finish();
}

// 2.2.20
Slice build_read_response(const Header& head, Bytes data) {
  Writer out(head);
  write_read_response(out, data.size());
  return out.finish_with(data);
}

Slice build_read_response_head(const Header& head, std::uint32_t data_bytes) {
  Writer out(head);
  write_read_response(out, data_bytes);
  return out.finish(data_bytes);
}

// 2.2.22
Slice build_write_response(const Header& head, std::uint32_t count) {
  Writer out(head);
  out.u16(17);
  out.u16(0);
  out.u32(count);
  out.zeros(8);
  return out.finish();
}

// 2.2.14. Without contexts both their place and their size are 0.
Slice build_create_response(const Header& head, const CreateResponse& response) {
  Writer out(head);
  out.u16(89);
  out.u8(static_cast<std::uint8_t>(response.oplock));
  out.u8(response.flags);
  out.u32(static_cast<std::uint32_t>(response.action));
  write_times(out, response.times);
  out.u64(response.allocation_bytes);
  out.u64(response.end_of_file);
  out.u32(response.file_attributes);
  out.u32(0);
  out.file_id(response.file);
  out.u32(0);
  out.u32(0);
  return out.finish();
}

// 2.2.16
Slice build_close_response(const Header& head, const CloseResponse& response) {
  Writer out(head);
  out.u16(60);
  out.u16(response.flags);
  out.u32(0);
  write_times(out, response.times);
  out.u64(response.allocation_bytes);
  out.u64(response.end_of_file);
  out.u32(response.file_attributes);
  return out.finish();
}

Slice build_empty_response(const Header& head) {
  Writer out(head);
  out.u16(4);
  out.u16(0);
  return out.finish();
}

Slice build_buffer_response(const Header& head, Bytes buffer) {
  Writer out(head);
  out.u16(9);
  out.u16(buffer.empty() ? 0 : kHeaderBytes + 8);
  out.u32(static_cast<std::uint32_t>(buffer.size()));
  if (buffer.empty()) out.u8(0);
  return out.finish_with(buffer);
}

// 2.2.15, 2.2.17, 2.2.19, 2.2.21, 2.2.24.1, 2.2.26, 2.2.31, 2.2.33, 2.2.35, 2.2.37, 2.2.39
std::optional<std::size_t> file_id_at(Command command) {
  switch (command) {
    case Command::close:
    case Command::flush:
    case Command::lock:
    case Command::ioctl:
    case Command::query_directory:
    case Command::change_notify:
    case Command::oplock_break:
      return kHeaderBytes + 8;
    case Command::read:
    case Command::write:
    case Command::set_info:
      return kHeaderBytes + 16;
    case Command::query_info:
      return kHeaderBytes + 24;
    default:
      return std::nullopt;
  }
}

std::optional<FileId> named_file(const Element& request) {
  const auto at = file_id_at(request.header.command);
  if (!at || request.bytes.size() < *at + 16) return std::nullopt;
  return FileId{load_le<std::uint64_t>(request.bytes, *at), load_le<std::uint64_t>(request.bytes, *at + 8)};
}

EditedFrame::EditedFrame(const Slice& frame) {
  const std::size_t copied = frame.size() <= kCopiedWhole ? frame.size() : kCopiedFront;
  front_ = Slice::with_room(frame.bytes().first(copied), copied, memory_);
  memory_ -= copied;
  back_ = frame.from(copied);
}

void EditedFrame::set_message_id(MessageId id, std::size_t element) {
  store_le(at(element, kMessageIdAt, sizeof id), id);
}
void EditedFrame::set_credits(std::uint16_t credits, std::size_t element) {
  store_le(at(element, kCreditsAt, sizeof credits), credits);
}
void EditedFrame::set_status(Status status, std::size_t element) {
  store_le(at(element, kStatusAt, sizeof status), static_cast<std::uint32_t>(status));
}
void EditedFrame::set_requested_oplock(OplockLevel level, std::size_t element) {
  *at(element, kRequestedOplockAt, 1) = static_cast<std::byte>(level);
}
void EditedFrame::set_granted_oplock(OplockLevel level, std::size_t element) {
  *at(element, kGrantedOplockAt, 1) = static_cast<std::byte>(level);
}

void EditedFrame::set_file_id(const FileId& file, std::size_t at, std::size_t element) {
  std::byte* id = this->at(element, at, 16);
  store_le(id, file.persistent_part);
  store_le(id + 8, file.volatile_part);
}

// The place of `bytes` of a field, for writing. Edits far behind the front (of a compound) move its end.
std::byte* EditedFrame::at(std::size_t element, std::size_t offset, std::size_t bytes) {
  const std::size_t begin = kFrameHeadBytes + element + offset, end = begin + bytes;
  assert(end <= front_.size() + back_.size());
  if (end > front_.size()) {
    const std::size_t more = end - front_.size();
    std::byte* memory = nullptr;
    Slice longer = Slice::unfilled(end, memory);
    std::memcpy(memory, front_.bytes().data(), front_.size());
    std::memcpy(memory + front_.size(), back_.bytes().data(), more);
    front_ = std::move(longer);
    memory_ = memory;
    back_ = back_.from(more);
  }
  return memory_ + begin;
}

EditedFrame::Parts EditedFrame::take() && { return {std::move(front_), std::move(back_)}; }

Slice EditedFrame::whole() && {
  return back_.empty() ? std::move(front_) : Slice::joined(front_.bytes(), back_.bytes());
}

}  // namespace longhaul::smb::smb2
