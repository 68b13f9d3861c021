// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/build_responses.h"

#include "proxy/modules/smb/smb2/frame_writer.h"

namespace longhaul::smb::smb2 {
namespace {

void write_times(FrameWriter& out, const FileTimes& times) {
  out.u64(times.creation);
  out.u64(times.last_access);
  out.u64(times.last_write);
  out.u64(times.change);
}

// 2.2.20: fixed fields before the data.
void write_read_response(FrameWriter& out, std::size_t data_bytes) {
  constexpr std::uint8_t kDataAt = kHeaderBytes + 16;
  out.u16(17);
  out.u8(kDataAt);
  out.u8(0);
  out.u32(static_cast<std::uint32_t>(data_bytes));
  out.u32(0);
  out.u32(0);
}

}  // namespace

// 3.3.4.1: ids, charge and priority are returned unchanged.
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

Slice build_message(const Header& header, Bytes body) { return FrameWriter(header).finish_with(body); }

// 2.2.2
Slice build_error_response(const Header& head) {
  FrameWriter out(head);
  out.u16(9);
  out.zeros(6);
  out.u8(0);  // one byte of error data though its length is 0
  return out.finish();
}

// 2.2.20
Slice build_read_response(const Header& head, Bytes data) {
  FrameWriter out(head);
  write_read_response(out, data.size());
  return out.finish_with(data);
}

Slice build_read_response_head(const Header& head, std::uint32_t data_bytes) {
  FrameWriter out(head);
  write_read_response(out, data_bytes);
  return out.finish(data_bytes);
}

// 2.2.22
Slice build_write_response(const Header& head, std::uint32_t count) {
  FrameWriter out(head);
  out.u16(17);
  out.u16(0);
  out.u32(count);
  out.zeros(8);
  return out.finish();
}

// 2.2.14. Without contexts both their offset and their size are 0.
Slice build_create_response(const Header& head, const CreateResponse& response) {
  FrameWriter out(head);
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
  FrameWriter out(head);
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
  FrameWriter out(head);
  out.u16(4);
  out.u16(0);
  return out.finish();
}

Slice build_buffer_response(const Header& head, Bytes buffer) {
  FrameWriter out(head);
  out.u16(9);
  out.u16(buffer.empty() ? 0 : kHeaderBytes + 8);
  out.u32(static_cast<std::uint32_t>(buffer.size()));
  if (buffer.empty()) out.u8(0);
  return out.finish_with(buffer);
}

}  // namespace longhaul::smb::smb2
