// SPDX-License-Identifier: Apache-2.0
// Records of SMB2 about open files: CREATE with its contexts, CLOSE, FLUSH, READ, WRITE, LOCK, IOCTL and the
// breaks of oplocks and leases. Without state: each function reads one element's bytes (header included) and
// borrows from them.
#pragma once
#include <optional>
#include <variant>

#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

// 2.2.13.2: names of create contexts. Most are four letters; some are sixteen bytes.
namespace create_context {
inline constexpr std::string_view ea = "ExtA";
inline constexpr std::string_view security = "SecD";
inline constexpr std::string_view durable = "DHnQ";
inline constexpr std::string_view durable_reconnect = "DHnC";
inline constexpr std::string_view allocation = "AlSi";
inline constexpr std::string_view maximal_access = "MxAc";
inline constexpr std::string_view timewarp = "TWrp";
inline constexpr std::string_view file_id = "QFid";
inline constexpr std::string_view lease = "RqLs";
inline constexpr std::string_view durable_v2 = "DH2Q";
inline constexpr std::string_view durable_reconnect_v2 = "DH2C";
inline constexpr std::string_view apple = "AAPL";
}  // namespace create_context

struct CreateContext {
  Bytes name;
  Bytes data;
};
using CreateContexts = boost::container::small_vector<CreateContext, 6>;
// The data of the first context of that name.
std::optional<Bytes> find_context(const CreateContexts& contexts, std::string_view name);

// 2.2.13.2.8 and 2.2.13.2.10; the same layouts answer (2.2.14.2.10, 2.2.14.2.11)
struct Lease {
  LeaseKey key{};
  std::uint32_t state = 0;  // lease_state
  std::uint32_t flags = 0;  // lease_flags
  std::uint8_t version = 1;
  LeaseKey parent_key{};    // version 2, with lease_flags::parent_key_set
  std::uint16_t epoch = 0;  // version 2
};

// 2.2.13.2.3, .4, .11 and .12: requests for a handle that outlives its connection.
enum class Durable : std::uint8_t { none, request, reconnect, request_v2, reconnect_v2 };

// 2.2.13
struct CreateRequest {
  OplockLevel oplock = OplockLevel::none;  // RequestedOplockLevel
  std::uint32_t impersonation = 2;
  std::uint32_t desired_access = 0;
  std::uint32_t file_attributes = 0;
  std::uint32_t share_access = 0;
  Disposition disposition = Disposition::open;
  std::uint32_t options = 0;
  Bytes name;  // UTF-16LE, relative to the share; empty: its root
  CreateContexts contexts;

  // Read from the contexts.
  std::optional<Lease> lease;  // valid only with OplockLevel::lease
  Durable durable = Durable::none;
  bool persistent = false;  // requested, or reconnected to
  FileId reconnect_to;      // with a reconnect
  Guid create_guid{};       // with version 2
  std::optional<std::uint64_t> allocation_bytes;
  std::optional<std::uint64_t> snapshot;  // TWrp: a FILETIME
};
Result<CreateRequest> parse_create_request(Bytes element);

// [MS-FSCC] 2.4.27 and others: a file's properties in the answers to CREATE and CLOSE. Times are FILETIMEs,
// in 100 ns.
struct FileTimes {
  std::uint64_t creation = 0;
  std::uint64_t last_access = 0;
  std::uint64_t last_write = 0;
  std::uint64_t change = 0;
};

// 2.2.14
struct CreateResponse {
  OplockLevel oplock = OplockLevel::none;
  std::uint8_t flags = 0;  // 1: a reparse point, 3.x
  CreateAction action = CreateAction::opened;
  FileTimes times;
  std::uint64_t allocation_bytes = 0;
  std::uint64_t end_of_file = 0;
  std::uint32_t file_attributes = 0;
  FileId file;
  CreateContexts contexts;

  // Read from the contexts.
  std::optional<Lease> lease;  // with OplockLevel::lease
  bool durable = false;
  bool persistent = false;
  std::optional<std::uint32_t> maximal_access;          // MxAc, when its own status is success
  std::optional<std::array<std::byte, 32>> on_disk_id;  // QFid: file id, volume id, and zeros

  // The granted caching, an oplock expressed as a lease state: level II is R, exclusive RW, batch RWH.
  std::uint32_t caching() const;
};
Result<CreateResponse> parse_create_response(Bytes element);

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
  std::uint32_t channel = 0;  // not 0: RDMA, and no data here
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
  std::uint32_t code = 0;  // fsctl, when flags has kIoctlIsFsctl
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

// 2.2.23.1 (notification), 2.2.24.1 (acknowledgement), 2.2.25.1 (response to it): one layout
struct OplockBreak {
  OplockLevel level = OplockLevel::none;
  FileId file;
};
// 2.2.23.2
struct LeaseBreakNotification {
  std::uint16_t new_epoch = 0;
  bool needs_acknowledgement = false;
  LeaseKey key{};
  std::uint32_t current_state = 0;
  std::uint32_t new_state = 0;
};
// 2.2.24.2 (acknowledgement), 2.2.25.2 (response to it)
struct LeaseBreakAcknowledgement {
  LeaseKey key{};
  std::uint32_t state = 0;
  std::uint32_t flags = 0;
};
using AnyBreak = std::variant<OplockBreak, LeaseBreakNotification, LeaseBreakAcknowledgement>;
Result<AnyBreak> parse_break(Bytes element);

}  // namespace longhaul::smb::smb2
