// SPDX-License-Identifier: Apache-2.0
// Records of SMB2 about open files: CLOSE, FLUSH, READ, WRITE, LOCK and IOCTL; records_create.h has CREATE,
// records_break.h the breaks of oplocks and leases. Without state: each function parses one element's bytes
// (including the header) and borrows from them.
#pragma once
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

// 2.2.15
struct CloseRequest {
  std::uint16_t flags = 0;  // kClosePostQueryAttributes
  FileId file;
};
Result<CloseRequest> parse_close_request(Bytes element);

// 2.2.16. Zeros unless requested.
struct CloseResponse {
  std::uint16_t flags = 0;
  FileTimes times;
  std::uint64_t allocation_bytes = 0;
  std::uint64_t end_of_file = 0;
  std::uint32_t file_attributes = 0;
};
Result<CloseResponse> parse_close_response(Bytes element);

// 2.2.17
struct FlushRequest {
  FileId file;
};
Result<FlushRequest> parse_flush_request(Bytes element);

// 2.2.19
struct ReadRequest {
  std::uint8_t padding = 0;  // preferred place of the data in the response; a hint only
  std::uint8_t flags = 0;    // kReadUnbuffered, kReadCompressed
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
  FileId file;
  std::uint32_t minimum_count = 0;
  std::uint32_t channel = 0;  // not 0: RDMA
  std::uint32_t remaining_bytes = 0;
};
Result<ReadRequest> parse_read_request(Bytes element);

// 2.2.20
struct ReadResponse {
  Bytes data;
  std::uint32_t data_remaining = 0;
};
Result<ReadResponse> parse_read_response(Bytes element);

// 2.2.21
struct WriteRequest {
  std::uint64_t offset = 0;
  FileId file;
  std::uint32_t channel = 0;  // not 0: RDMA, without data here
  std::uint32_t remaining_bytes = 0;
  std::uint32_t flags = 0;  // kWriteThrough, kWriteUnbuffered
  Bytes data;
};
Result<WriteRequest> parse_write_request(Bytes element);

// 2.2.22
struct WriteResponse {
  std::uint32_t count = 0;
};
Result<WriteResponse> parse_write_response(Bytes element);

// 2.2.26
struct LockRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t flags = 0;  // lock_flags
};
struct LockRequest {
  std::uint32_t sequence = 0;
  FileId file;
  boost::container::small_vector<LockRange, 2> ranges;
};
Result<LockRequest> parse_lock_request(Bytes element);

// 2.2.31
struct IoctlRequest {
  std::uint32_t code = 0;  // fsctl, if flags has kIoctlIsFsctl
  FileId file;
  Bytes input;
  std::uint32_t max_input_bytes = 0;
  std::uint32_t max_output_bytes = 0;
  std::uint32_t flags = 0;
};
inline constexpr std::uint32_t kIoctlIsFsctl = 1;
Result<IoctlRequest> parse_ioctl_request(Bytes element);
bool asks_for_interfaces(const Element& request);  // FSCTL_QUERY_NETWORK_INTERFACE_INFO

// 2.2.32
struct IoctlResponse {
  std::uint32_t code = 0;
  FileId file;
  Bytes input;
  Bytes output;
  std::uint32_t flags = 0;
};
Result<IoctlResponse> parse_ioctl_response(Bytes element);

}  // namespace longhaul::smb::smb2
