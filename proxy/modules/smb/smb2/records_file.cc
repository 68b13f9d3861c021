// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/records_file.h"

#include "proxy/modules/smb/smb2/body_reader.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::uint32_t kPersistent = 2;  // 2.2.13.2.11, 2.2.13.2.12, 2.2.14.2.12
constexpr std::size_t kContextHeadBytes = 16;

template <std::size_t size>
std::array<std::byte, size> read_array(LittleEndianReader& in) {
  std::array<std::byte, size> out{};
  const Bytes from = in.bytes(size);
  std::copy(from.begin(), from.end(), out.begin());
  return out;
}

FileId read_file_id(LittleEndianReader& in) {
  FileId id;
  id.persistent_part = in.u64();
  id.volatile_part = in.u64();
  return id;
}

// 2.2.13.2: offsets count from the context's first byte, Next to the following one.
std::optional<CreateContexts> parse_contexts(Bytes list) {
  CreateContexts contexts;
  while (!list.empty()) {
    LittleEndianReader in(list);
    const std::uint32_t next = in.u32();
    const std::uint16_t name_offset = in.u16(), name_bytes = in.u16();
    in.skip(2);
    const std::uint16_t data_offset = in.u16();
    const std::uint32_t data_bytes = in.u32();
    if (!in.ok() || next % 8 != 0 || next > list.size() || (next != 0 && next < kContextHeadBytes))
      return std::nullopt;
    const Bytes context = next == 0 ? list : list.first(next);
    const auto part = [&](std::size_t offset, std::size_t bytes) -> std::optional<Bytes> {
      if (bytes == 0) return Bytes{};
      if (offset < kContextHeadBytes || offset > context.size() || bytes > context.size() - offset)
        return std::nullopt;
      return context.subspan(offset, bytes);
    };
    const auto name = part(name_offset, name_bytes), data = part(data_offset, data_bytes);
    if (!name || !data) return std::nullopt;
    contexts.push_back({*name, *data});
    if (next == 0) break;
    list = list.subspan(next);
  }
  return contexts;
}

// Other sizes are not a lease: servers refuse or ignore them.
std::optional<Lease> parse_lease(const CreateContexts& contexts) {
  const auto data = find_context(contexts, create_context::lease);
  if (!data || (data->size() != 32 && data->size() != 52)) return std::nullopt;
  LittleEndianReader in(*data);
  Lease lease;
  lease.key = read_array<16>(in);
  lease.state = in.u32();
  lease.flags = in.u32();
  in.skip(8);  // LeaseDuration
  if (data->size() == 52) {
    lease.version = 2;
    lease.parent_key = read_array<16>(in);
    lease.epoch = in.u16();
  }
  return lease;
}

std::optional<std::uint64_t> parse_number(const CreateContexts& contexts, std::string_view name) {
  const auto data = find_context(contexts, name);
  if (!data || data->size() != 8) return std::nullopt;
  return load_le<std::uint64_t>(*data, 0);
}

// Handles that outlive the connection; a reconnect overrides a request beside it. The server checks the
// lengths: for us it only matters that such handles pass unchanged.
void read_durable(CreateRequest& request) {
  if (const auto data = find_context(request.contexts, create_context::durable_v2)) {
    LittleEndianReader in(*data);
    in.skip(4);  // Timeout
    request.durable = Durable::request_v2;
    request.persistent = in.u32() & kPersistent;
    in.skip(8);
    request.create_guid = read_array<16>(in);
  } else if (find_context(request.contexts, create_context::durable)) {
    request.durable = Durable::request;
  }
  if (const auto data = find_context(request.contexts, create_context::durable_reconnect_v2)) {
    LittleEndianReader in(*data);
    request.durable = Durable::reconnect_v2;
    request.reconnect_to = read_file_id(in);
    request.create_guid = read_array<16>(in);
    request.persistent = in.u32() & kPersistent;
  } else if (const auto v1 = find_context(request.contexts, create_context::durable_reconnect)) {
    LittleEndianReader in(*v1);
    request.durable = Durable::reconnect;
    request.reconnect_to = read_file_id(in);
  }
}

FileTimes read_times(BodyReader& in) {
  FileTimes times;
  times.creation = in.u64();
  times.last_access = in.u64();
  times.last_write = in.u64();
  times.change = in.u64();
  return times;
}

}  // namespace

std::optional<Bytes> find_context(const CreateContexts& contexts, std::string_view name) {
  for (const CreateContext& context : contexts)
    if (as_text(context.name) == name) return context.data;
  return std::nullopt;
}

// 2.2.13
Result<CreateRequest> parse_create_request(Bytes element) {
  BodyReader in(element, 57);
  CreateRequest request;
  in.skip(1);  // SecurityFlags
  request.oplock = static_cast<OplockLevel>(in.u8());
  request.impersonation = in.u32();
  in.skip(16);  // SmbCreateFlags, Reserved
  request.desired_access = in.u32();
  request.file_attributes = in.u32();
  request.share_access = in.u32();
  request.disposition = static_cast<Disposition>(in.u32());
  request.options = in.u32();
  const std::uint16_t name_offset = in.u16(), name_bytes = in.u16();
  const std::uint32_t contexts_offset = in.u32(), contexts_bytes = in.u32();
  request.name = in.buffer(name_offset, name_bytes);
  auto contexts = parse_contexts(in.buffer(contexts_offset, contexts_bytes));
  if (!in.ok() || !contexts) return Error::malformed_record;
  request.contexts = std::move(*contexts);
  request.lease = parse_lease(request.contexts);
  request.allocation_bytes = parse_number(request.contexts, create_context::allocation);
  request.snapshot = parse_number(request.contexts, create_context::timewarp);
  read_durable(request);
  return request;
}

// 2.2.14
Result<CreateResponse> parse_create_response(Bytes element) {
  BodyReader in(element, 89);
  CreateResponse response;
  response.oplock = static_cast<OplockLevel>(in.u8());
  response.flags = in.u8();
  response.action = static_cast<CreateAction>(in.u32());
  response.times = read_times(in);
  response.allocation_bytes = in.u64();
  response.end_of_file = in.u64();
  response.file_attributes = in.u32();
  in.skip(4);
  response.file = in.file_id();
  const std::uint32_t contexts_offset = in.u32(), contexts_bytes = in.u32();
  auto contexts = parse_contexts(in.buffer(contexts_offset, contexts_bytes));
  if (!in.ok() || !contexts) return Error::malformed_record;
  response.contexts = std::move(*contexts);
  response.lease = parse_lease(response.contexts);
  if (const auto data = find_context(response.contexts, create_context::durable_v2)) {
    response.durable = true;
    response.persistent = data->size() >= 8 && (load_le<std::uint32_t>(*data, 4) & kPersistent);
  } else {
    response.durable = find_context(response.contexts, create_context::durable).has_value();
  }
  // 2.2.14.2.5
  if (const auto data = find_context(response.contexts, create_context::maximal_access);
      data && data->size() == 8 && load_le<std::uint32_t>(*data, 0) == 0)
    response.maximal_access = load_le<std::uint32_t>(*data, 4);
  // 2.2.14.2.9
  if (const auto data = find_context(response.contexts, create_context::file_id);
      data && data->size() == 32) {
    response.on_disk_id.emplace();
    std::copy(data->begin(), data->end(), response.on_disk_id->begin());
  }
  return response;
}

std::uint32_t CreateResponse::caching() const {
  using namespace lease_state;
  switch (oplock) {
    case OplockLevel::none:
      return lease_state::none;
    case OplockLevel::level_ii:
      return read;
    case OplockLevel::exclusive:
      return read | write;
    case OplockLevel::batch:
      return read | write | handle;
    case OplockLevel::lease:
      return lease ? lease->state & (read | write | handle) : lease_state::none;
  }
  return lease_state::none;
}

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
  response.times = read_times(in);
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

// The three layouts of 2.2.23 to 2.2.25 differ in their size.
Result<AnyBreak> parse_break(Bytes element) {
  if (BodyReader in(element, 24); in.ok()) {
    OplockBreak oplock;
    oplock.level = static_cast<OplockLevel>(in.u8());
    in.skip(5);
    oplock.file = in.file_id();
    return in.finish(AnyBreak(oplock));
  }
  if (BodyReader in(element, 44); in.ok()) {
    LeaseBreakNotification lease;
    lease.new_epoch = in.u16();
    lease.needs_acknowledgement = in.u32() & 1;
    lease.key = in.id16();
    lease.current_state = in.u32();
    lease.new_state = in.u32();
    in.skip(12);  // BreakReason, AccessMaskHint, ShareMaskHint: reserved
    return in.finish(AnyBreak(lease));
  }
  BodyReader in(element, 36);
  LeaseBreakAcknowledgement lease;
  in.skip(2);
  lease.flags = in.u32();
  lease.key = in.id16();
  lease.state = in.u32();
  in.skip(8);  // LeaseDuration
  return in.finish(AnyBreak(lease));
}

}  // namespace longhaul::smb::smb2
