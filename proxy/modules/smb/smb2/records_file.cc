// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/records_file.h"

#include "proxy/modules/smb/smb2/body_reader.h"

namespace longhaul::smb::smb2 {
// 2.2.15
Result<CloseRequest> parse_close_request(Bytes element) {
  BodyReader in(element, 24);
  CloseRequest request;
  request.flags = in.u16();
  in.skip(4);
  request.file = in.file_id();
  return in.finish(std::move(request));
}

// 2.2.16
Result<CloseResponse> parse_close_response(Bytes element) {
  BodyReader in(element, 60);
  CloseResponse response;
  response.flags = in.u16();
  in.skip(4);
  response.times = in.file_times();
  response.allocation_bytes = in.u64();
  response.end_of_file = in.u64();
  response.file_attributes = in.u32();
  return in.finish(std::move(response));
}

// 2.2.17
Result<FlushRequest> parse_flush_request(Bytes element) {
  BodyReader in(element, 24);
  in.skip(6);
  FlushRequest request{in.file_id()};
  return in.finish(std::move(request));
}

// 2.2.19. ReadChannelInfo belongs to RDMA, which is not TCP.
Result<ReadRequest> parse_read_request(Bytes element) {
  BodyReader in(element, 49);
  ReadRequest request;
  request.padding = in.u8();
  request.flags = in.u8();
  request.length = in.u32();
  request.offset = in.u64();
  request.file = in.file_id();
  request.minimum_count = in.u32();
  request.channel = in.u32();
  request.remaining_bytes = in.u32();
  in.skip(4);
  return in.finish(std::move(request));
}

// 2.2.20
Result<ReadResponse> parse_read_response(Bytes element) {
  BodyReader in(element, 17);
  ReadResponse response;
  const std::uint8_t offset = in.u8();
  in.skip(1);
  const std::uint32_t length = in.u32();
  response.data_remaining = in.u32();
  in.skip(4);
  response.data = in.buffer(offset, length);
  return in.finish(std::move(response));
}

// 2.2.21
Result<WriteRequest> parse_write_request(Bytes element) {
  BodyReader in(element, 49);
  WriteRequest request;
  const std::uint16_t offset = in.u16();
  const std::uint32_t length = in.u32();
  request.offset = in.u64();
  request.file = in.file_id();
  request.channel = in.u32();
  request.remaining_bytes = in.u32();
  in.skip(4);
  request.flags = in.u32();
  request.data = in.buffer(offset, length);
  return in.finish(std::move(request));
}

// 2.2.22
Result<WriteResponse> parse_write_response(Bytes element) {
  BodyReader in(element, 17);
  in.skip(2);
  WriteResponse response{in.u32()};
  in.skip(8);
  return in.finish(std::move(response));
}

// 2.2.26
Result<LockRequest> parse_lock_request(Bytes element) {
  BodyReader in(element, 48);
  LockRequest request;
  std::uint16_t ranges = in.u16();
  request.sequence = in.u32();
  request.file = in.file_id();
  for (; ranges > 0 && in.ok(); --ranges) {
    LockRange range;
    range.offset = in.u64();
    range.length = in.u64();
    range.flags = in.u32();
    in.skip(4);
    request.ranges.push_back(range);
  }
  return in.finish(std::move(request));
}

// 2.2.31
Result<IoctlRequest> parse_ioctl_request(Bytes element) {
  BodyReader in(element, 57);
  IoctlRequest request;
  in.skip(2);
  request.code = in.u32();
  request.file = in.file_id();
  const std::uint32_t input_offset = in.u32(), input_bytes = in.u32();
  request.max_input_bytes = in.u32();
  in.skip(8);  // OutputOffset, OutputCount
  request.max_output_bytes = in.u32();
  request.flags = in.u32();
  in.skip(4);
  request.input = in.buffer(input_offset, input_bytes);
  return in.finish(std::move(request));
}

bool asks_for_interfaces(const Element& request) {
  if (request.header.command != Command::ioctl) return false;
  const auto ioctl = parse_ioctl_request(request.bytes);
  return ioctl && ioctl->code == fsctl::query_network_interface_info;
}

// 2.2.32
Result<IoctlResponse> parse_ioctl_response(Bytes element) {
  BodyReader in(element, 49);
  IoctlResponse response;
  in.skip(2);
  response.code = in.u32();
  response.file = in.file_id();
  const std::uint32_t input_offset = in.u32(), input_bytes = in.u32();
  const std::uint32_t output_offset = in.u32(), output_bytes = in.u32();
  response.flags = in.u32();
  in.skip(4);
  response.input = in.buffer(input_offset, input_bytes);
  response.output = in.buffer(output_offset, output_bytes);
  return in.finish(std::move(response));
}

}  // namespace longhaul::smb::smb2
