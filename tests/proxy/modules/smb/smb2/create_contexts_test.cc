// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/create_contexts.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "codecs/little_endian.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

struct NamedContext {
  std::string name;
  Buffer data;
};

// As clients send it: each name behind its head, the data at the next multiple of eight.
Buffer context_list(const std::vector<NamedContext>& contexts) {
  Buffer list;
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const auto& [name, data] = contexts[i];
    const std::size_t data_at = (16 + name.size() + 7) / 8 * 8, end = (data_at + data.size() + 7) / 8 * 8;
    const bool is_last = i + 1 == contexts.size();
    Buffer context;
    LittleEndianWriter out(context);
    out.u32(static_cast<std::uint32_t>(is_last ? 0 : end));
    out.u16(16), out.u16(static_cast<std::uint16_t>(name.size())), out.u16(0);
    out.u16(static_cast<std::uint16_t>(data_at)), out.u32(static_cast<std::uint32_t>(data.size()));
    out.bytes(as_bytes(name));
    out.zeros(data_at - context.size());
    out.bytes(data);
    if (!is_last) out.zeros(end - context.size());
    append(list, context);
  }
  return list;
}

Buffer written(const std::function<void(LittleEndianWriter&)>& write) {
  Buffer data;
  LittleEndianWriter out(data);
  write(out);
  return data;
}

DurableHandle durable_of(const std::vector<NamedContext>& contexts) {
  const Buffer list = context_list(contexts);
  return parse_durable(parse_contexts(list).value());
}

}  // namespace

TEST_CASE("create contexts are found by name, and the first of a name counts") {
  const Buffer list = context_list({{"MxAc", {}}, {"AlSi", Buffer(8, std::byte{1})}, {"AlSi", Buffer(8)}});
  const auto contexts = parse_contexts(list);
  REQUIRE(contexts);
  CHECK(contexts->size() == 3);
  CHECK(find_context(*contexts, create_context::maximal_access)->empty());
  CHECK(parse_number(*contexts, create_context::allocation) == 0x0101010101010101);
  CHECK_FALSE(parse_number(*contexts, create_context::maximal_access));  // no number
  CHECK_FALSE(find_context(*contexts, create_context::lease));
  CHECK(parse_contexts({})->empty());
}

TEST_CASE("a cut list of create contexts is refused or has no more than it shows") {
  const Buffer list = context_list({{"DHnQ", Buffer(16)}, {"RqLs", Buffer(32)}});
  const std::size_t second = load_le<std::uint32_t>(list, 0);
  for (std::size_t size = 1; size < list.size(); ++size) {
    CAPTURE(size);
    const auto contexts = parse_contexts(Bytes(list).first(size));
    CHECK(contexts.has_value() == (size == second));
    if (contexts) CHECK(contexts->size() == 1);
  }
  // A next one inside the head would read the same bytes again and again.
  Buffer loops = list;
  store_le<std::uint32_t>(loops.data(), 8);
  CHECK_FALSE(parse_contexts(loops));
}

TEST_CASE("a lease is one of version 1 or 2 by its size, and nothing else") {
  const auto lease_of = [](std::size_t size) {
    const Buffer data = written([&](auto& out) {
      out.u64(7), out.u64(8), out.u32(lease_state::read), out.u32(0), out.u64(0);
      if (size == 52) out.u64(9), out.u64(10), out.u16(3), out.u16(0);
    });
    Buffer sized = data;
    sized.resize(size);
    const Buffer list = context_list({{"RqLs", sized}});
    return parse_lease(parse_contexts(list).value());
  };
  REQUIRE(lease_of(32));
  CHECK(lease_of(32)->version == 1);
  CHECK(lease_of(32)->state == lease_state::read);
  REQUIRE(lease_of(52));
  CHECK(lease_of(52)->version == 2);
  CHECK(lease_of(52)->epoch == 3);
  CHECK(lease_of(52)->parent_key[0] == std::byte{9});
  CHECK_FALSE(lease_of(31));
  CHECK_FALSE(lease_of(33));
  CHECK_FALSE(lease_of(64));
}

TEST_CASE("of requests for a durable handle, a reconnect counts, and of these the newer version") {
  const Buffer v2 = written([](auto& out) { out.u32(0), out.u32(2), out.u64(0), out.u64(5), out.u64(6); });
  const Buffer again = written([](auto& out) { out.u64(1), out.u64(2), out.u64(3), out.u64(4), out.u32(0); });
  CHECK(durable_of({{"MxAc", {}}}).durable == Durable::none);
  CHECK(durable_of({{"DHnQ", Buffer(16)}}).durable == Durable::request);
  const DurableHandle asked = durable_of({{"DHnQ", Buffer(16)}, {"DH2Q", v2}});
  CHECK(asked.durable == Durable::request_v2);
  CHECK(asked.persistent);
  CHECK(asked.create_guid[0] == std::byte{5});
  const DurableHandle old = durable_of({{"DH2Q", v2}, {"DHnC", again}});
  CHECK(old.durable == Durable::reconnect);
  CHECK(old.reconnect_to == FileId{1, 2});
  const DurableHandle both = durable_of({{"DHnC", Buffer(16)}, {"DH2C", again}, {"DH2Q", v2}});
  CHECK(both.durable == Durable::reconnect_v2);
  CHECK(both.reconnect_to == FileId{1, 2});
  CHECK(both.create_guid[0] == std::byte{3});
  CHECK_FALSE(both.persistent);
}
