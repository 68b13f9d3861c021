// SPDX-License-Identifier: Apache-2.0
// Promises where a client could bind a connection to its session that does not pass the pair.
#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

void add_interface(Buffer& list, const modules::Address& address) {
  if (!list.empty()) store_le<std::uint32_t>(list.data() + list.size() - 152, 152);
  LittleEndianWriter w(list);
  w.u32(0), w.u32(1), w.u32(0), w.u32(0), w.u64(1'000'000'000);
  if (address[10] == std::byte{0xFF}) {
    w.u16(2), w.u16(0), w.bytes(Bytes(address).subspan(12)), w.zeros(120);
  } else {
    w.u16(23), w.u16(0), w.u32(0), w.bytes(address), w.zeros(104);
  }
}

modules::Address v4(unsigned a, unsigned d) {
  modules::Address address = kServerAddress;
  address[12] = std::byte(a), address[15] = std::byte(d);
  return address;
}
modules::Address v6(unsigned first, unsigned second, unsigned last) {
  modules::Address address{};
  address[0] = std::byte(first), address[1] = std::byte(second), address[15] = std::byte(last);
  return address;
}

World world_of(std::uint32_t seed) {
  return World(seed, std::make_shared<LostWrites>(), std::make_shared<Channels>(),
               {.server = kServerAddress});
}

void announce(World& world) {
  world.client_capabilities = world.server.server_capabilities =
      capabilities::large_mtu | capabilities::multi_channel;
  world.server.dialect = 0x0300;
}

bool is_promised(World& world, std::string_view name) {
  const auto file = world.create(name, Disposition::overwrite_if, kNone);
  REQUIRE(file);
  world.settle();
  world.server_idle = true;
  const auto id = world.send_write(*file, 0, "hello");
  world.settle();
  const bool early = world.answers.contains(id);
  world.server_idle = false;
  CHECK(world.status(id) == Status::success);
  CHECK(world.status(world.send_close(*file)) == Status::success);
  return early;
}

}  // namespace

TEST_CASE("further addresses are found in a server's list of interfaces") {
  const auto others = [](std::initializer_list<modules::Address> addresses) {
    Buffer list;
    for (const modules::Address& each : addresses) add_interface(list, each);
    return lists_other_addresses(list, kServerAddress).value();
  };
  CHECK_FALSE(others({}));
  CHECK_FALSE(others({kServerAddress, v4(127, 1), v6(0, 0, 1), v6(0xFE, 0x80, 1)}));
  CHECK(others({kServerAddress, v4(10, 2)}));
  CHECK(others({v6(0xFD, 0, 1), kServerAddress}));
  Buffer list;
  add_interface(list, kServerAddress), add_interface(list, kServerAddress);
  for (std::size_t size = 1; size < list.size(); ++size)
    CHECK_FALSE(lists_other_addresses(Bytes(list).first(size), kServerAddress).has_value());
  store_le<std::uint32_t>(list.data(), 8);
  CHECK_FALSE(lists_other_addresses(list, kServerAddress).has_value());
}

TEST_CASE("if both sides support multichannel the server's addresses decide whether writes are promised") {
  World world = world_of(GENERATE(1u, 2u, 3u, 4u));
  add_interface(world.server.interfaces, kServerAddress);
  SECTION("one address") {
    announce(world);
    REQUIRE(world.connect());
    CHECK(is_promised(world, "a"));
    CHECK(is_promised(world, "b"));
    CHECK(world.server.done[Command::ioctl] == 1);
  }
  SECTION("another one") {
    announce(world);
    add_interface(world.server.interfaces, v4(10, 2));
    REQUIRE(world.connect());
    CHECK_FALSE(is_promised(world, "a"));
    CHECK_FALSE(is_promised(world, "b"));
    CHECK(world.server.done[Command::ioctl] == 1);
    CHECK(world.near_counters().unpromised_files == 2);
    CHECK(world.near().reason() == smb::reasons::smb_other_paths);
  }
  SECTION("the server does not say") {
    announce(world);
    world.server.failing[Command::ioctl] = Status::not_supported;
    REQUIRE(world.connect());
    CHECK_FALSE(is_promised(world, "a"));
  }
  SECTION("the client does not support it") {
    announce(world);
    world.client_capabilities = capabilities::large_mtu;
    REQUIRE(world.connect());
    CHECK(is_promised(world, "a"));
    CHECK(world.server.done[Command::ioctl] == 0);
  }
  SECTION("2.1 does not have it") {
    announce(world);
    world.server.dialect = 0x0210;
    REQUIRE(world.connect());
    CHECK(is_promised(world, "a"));
  }
}

TEST_CASE("a client that learns another address gets no promises after it has asked for addresses") {
  World world = world_of(5);
  announce(world);
  add_interface(world.server.interfaces, kServerAddress);
  REQUIRE(world.connect());
  CHECK(is_promised(world, "a"));
  const auto file = world.create("b", Disposition::overwrite_if, kNone);
  REQUIRE(file);
  world.settle();
  const bool fails = GENERATE(false, true);
  if (fails) {
    world.server.failing[Command::ioctl] = Status::insufficient_resources;
  } else {
    add_interface(world.server.interfaces, v6(0xFD, 0, 2));
  }
  world.server_idle = true;
  const auto question = world.send_query_interfaces();
  const auto write = world.send_write(*file, 0, "hello");
  world.settle();
  CHECK_FALSE(world.answers.contains(write));
  world.server_idle = false;
  CHECK(world.wait(question));
  CHECK(world.status(write) == Status::success);
  CHECK(world.status(world.send_close(*file)) == Status::success);
  CHECK(is_promised(world, "c") == fails);
  world.server.failing.clear();
  CHECK(world.server.files["b"] == "hello");
}

}  // namespace longhaul::smb::smb2::model
