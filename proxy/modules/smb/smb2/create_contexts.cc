// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/create_contexts.h"

#include <algorithm>
#include <array>

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

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

}  // namespace

std::optional<Bytes> find_context(const CreateContexts& contexts, std::string_view name) {
  for (const CreateContext& context : contexts)
    if (as_text(context.name) == name) return context.data;
  return std::nullopt;
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

DurableHandle parse_durable(const CreateContexts& contexts) {
  DurableHandle handle;
  if (const auto data = find_context(contexts, create_context::durable_v2)) {
    LittleEndianReader in(*data);
    in.skip(4);  // Timeout
    handle.durable = Durable::request_v2;
    handle.persistent = in.u32() & kPersistent;
    in.skip(8);
    handle.create_guid = read_array<16>(in);
  } else if (find_context(contexts, create_context::durable)) {
    handle.durable = Durable::request;
  }
  if (const auto data = find_context(contexts, create_context::durable_reconnect_v2)) {
    LittleEndianReader in(*data);
    handle.durable = Durable::reconnect_v2;
    handle.reconnect_to = read_file_id(in);
    handle.create_guid = read_array<16>(in);
    handle.persistent = in.u32() & kPersistent;
  } else if (const auto v1 = find_context(contexts, create_context::durable_reconnect)) {
    LittleEndianReader in(*v1);
    handle.durable = Durable::reconnect;
    handle.reconnect_to = read_file_id(in);
  }
  return handle;
}

}  // namespace longhaul::smb::smb2
