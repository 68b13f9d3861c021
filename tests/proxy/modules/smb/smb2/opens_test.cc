// SPDX-License-Identifier: Apache-2.0
// Which files are opened ahead of the client, how far, and with what (near_opens.h, far_opens.h).
#include "proxy/modules/smb/smb2/folder_reader.h"
#include "proxy/modules/smb/smb2/plain_open.h"

namespace longhaul::smb::smb2::model {
namespace {

using namespace std::chrono_literals;

TEST_CASE("files that are read in sequence are opened ahead of the client") {
  FolderReader world(1, 40);
  world.list();
  world.read_in_order(0, 10);
  world.server_idle = true;
  for (int i = 10; i < 14; ++i) {
    const MessageId create = world.open(i);
    REQUIRE(world.answers.contains(create));
    const auto file = world.opened(create);
    REQUIRE(file);
    const MessageId read = world.send_read(*file, 0, 4096);
    REQUIRE(world.answers.contains(read));
    CHECK(as_text(parse_read_response(world.answers.at(read).first().bytes)->data) ==
          world.server.files[world.path(i)]);
    REQUIRE(world.answers.contains(world.send_close(*file)));
  }
  world.server_idle = false;
  CHECK(world.near_counters().opens_ahead_used >= 4);
  world.end();
}

TEST_CASE("a client that requests durable handles and no oplock still has the next files opened ahead") {
  FolderReader world(1, 40);
  const Buffer data(16, std::byte{});
  const auto open = [&](int i) {
    const std::string wide = utf16(world.path(i));
    CreateRequest request;
    request.desired_access = access::read_data | access::synchronize;
    request.share_access = 7;
    request.disposition = Disposition::open;
    request.name = as_bytes(wide);
    request.contexts = {{as_bytes(create_context::durable), data},
                        {as_bytes(create_context::maximal_access), {}},
                        {as_bytes(create_context::file_id), {}}};
    const Slice made = build_create_request({}, request);
    return world.send({.credit_charge = 1, .command = Command::create},
                      [&](LittleEndianWriter& w) { w.bytes(made.bytes().subspan(4 + kHeaderBytes)); });
  };
  world.list();
  for (int i = 0; i < 12; ++i) {
    const auto file = world.opened(open(i));
    REQUIRE(file);
    CHECK(world.read(*file) == world.server.files[world.path(i)]);
    REQUIRE(world.status(world.send_close(*file)) == Status::success);
    world.settle();
  }
  CHECK(world.near_counters().opens_ahead_used >= 4);
  world.server_idle = true;
  const MessageId create = open(12);
  REQUIRE(world.answers.contains(create));
  const MessageId read = world.send_read(*world.opened(create), 0, 4096);
  CHECK(world.answers.contains(read));
  REQUIRE(world.answers.contains(world.send_close(*world.opened(create))));
  world.server_idle = false;
  world.end();
}

TEST_CASE("files whose opens a client could replay, or would open persistently, are not opened ahead") {
  Buffer data(32, std::byte{});
  CreateRequest request;
  const std::string name = utf16("dir\\file");
  request.desired_access = access::read_data;
  request.disposition = Disposition::open;
  request.name = as_bytes(name);
  for (const bool persistent : {false, true}) {
    data[4] = std::byte{persistent ? std::uint8_t{2} : std::uint8_t{0}};
    request.contexts = {{as_bytes(create_context::durable_v2), data}};
    const Slice made = build_create_request({}, request);
    const auto message = parse_message({FrameKind::smb2, made}).value();
    CHECK_FALSE(plain_open(message.header(), parse_create_request(message.first().bytes).value()));
  }
}

TEST_CASE("queries made for each file are sent for files opened ahead") {
  FolderReader world(2, 40);
  world.list();
  const auto ask = [&](int i, bool here) {
    const auto file = world.opened(world.open(i));
    REQUIRE(file);
    const MessageId asked = world.send_query_info(*file, file_info::standard);
    if (here) CHECK(world.answers.contains(asked));
    REQUIRE(world.status(asked) == Status::success);
    const auto info = parse_buffer_response(world.answers.at(asked).first().bytes);
    CHECK(load_le<std::uint64_t>(info->buffer, 8) == world.server.files[world.path(i)].size());
    world.read(*file);
    REQUIRE(world.status(world.send_close(*file)) == Status::success);
    if (!here) world.settle();
  };
  for (int i = 0; i < 12; ++i) ask(i, false);
  world.server_idle = true;
  ask(12, true);
  ask(13, true);
  world.server_idle = false;
  world.end();
}

TEST_CASE("files in no order, without reads, or without a listing are not opened ahead") {
  FolderReader world(3, 20);
  SECTION("no listing") { world.read_in_order(0, 10); }
  SECTION("no order") {
    world.list();
    for (int i : {5, 2, 19, 7, 0, 12}) CHECK(world.read(i) == world.server.files[world.path(i)]);
  }
  SECTION("not read") {
    world.list();
    for (int i = 0; i < 10; ++i) {
      const auto file = world.opened(world.open(i));
      REQUIRE(file);
      REQUIRE(world.status(world.send_close(*file)) == Status::success);
    }
  }
  SECTION("a server that gives no oplocks") {
    world.server.oplocks = false;
    world.list();
    world.read_in_order(0, 10);
  }
  CHECK(world.near_counters().opens_ahead == 0);
  world.end();
}

TEST_CASE("files opened in vain are closed after a while, and fewer are opened then") {
  FolderReader world(4, 100);
  world.list();
  world.read_in_order(0, 20);
  const std::size_t many = world.server.open_files();
  CHECK(many > 10);
  world.pass(1s);
  world.settle();
  CHECK(world.server.open_files() == many);
  world.pass(5s);
  world.settle();
  CHECK(world.server.open_files() == 0);
  world.read_in_order(20, 22);
  CHECK(world.server.open_files() > 0);
  CHECK(world.server.open_files() <= many);
  world.end();
}

TEST_CASE("each file is opened once, however many opens a client sends at a time") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    FolderReader world(seed, 60);
    world.list();
    std::deque<std::pair<int, MessageId>> opening;
    int next = 0;
    while (next < 60 || !opening.empty()) {
      if (next < 60 && opening.size() < 1 + seed % 6) {
        opening.emplace_back(next, world.open(next));
        ++next;
        continue;
      }
      const auto [i, create] = opening.front();
      opening.pop_front();
      const auto file = world.opened(create);
      REQUIRE(file);
      CHECK(world.read(*file) == world.server.files[world.path(i)]);
      REQUIRE(world.status(world.send_close(*file)) == Status::success);
      for (auto steps = random() % 20; steps > 0; --steps) world.step();
    }
    CHECK(world.server.met_oplocks == 0);
    CHECK(world.server.done[Command::create] == 61);
    CHECK(world.near_counters().opens_ahead_used > 0);
    world.end();
  }
}

}  // namespace
}  // namespace longhaul::smb::smb2::model
