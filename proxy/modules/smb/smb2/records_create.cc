// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/records_create.h"

#include <algorithm>
#include <utility>

#include "proxy/modules/smb/smb2/body_reader.h"

namespace longhaul::smb::smb2 {

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
  const DurableHandle handle = parse_durable(request.contexts);
  request.durable = handle.durable;
  request.persistent = handle.persistent;
  request.reconnect_to = handle.reconnect_to;
  request.create_guid = handle.create_guid;
  return request;
}

// 2.2.14
Result<CreateResponse> parse_create_response(Bytes element) {
  BodyReader in(element, 89);
  CreateResponse response;
  response.oplock = static_cast<OplockLevel>(in.u8());
  response.flags = in.u8();
  response.action = static_cast<CreateAction>(in.u32());
  response.times = in.file_times();
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

}  // namespace longhaul::smb::smb2
