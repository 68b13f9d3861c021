// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

std::string random_bytes(std::mt19937& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& each : bytes) each = static_cast<char>('a' + random() % 26);
  return bytes;
}

void apply(std::string& file, std::uint64_t offset, const std::string& data) {
  if (file.size() < offset + data.size()) file.resize(offset + data.size());
  file.replace(offset, data.size(), data);
}

}  // namespace

TEST_CASE("a write under a batch oplock is answered before the server has seen it") {
  const OplockLevel asked = GENERATE(kBatch, kNone);  // by the client, or by the far half for it
  World world(1);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, asked);
  REQUIRE(file);
  world.settle();  // the room on the disk is known
  world.server_idle = true;
  const auto id = world.send_write(*file, 0, "hello");
  CHECK(world.answers.contains(id));
  CHECK(world.server.files["a"].empty());
  world.settle();
  const auto close = world.send_close(*file);
  world.settle();
  CHECK_FALSE(world.answers.contains(close));  // waits for the server
  world.server_idle = false;
  CHECK(world.status(close) == Status::success);
  CHECK(world.server.files["a"] == "hello");
  world.settle();
  CHECK(world.near_counters().promises_made == 1);
  CHECK(world.near_counters().promises_kept == 1);
}

TEST_CASE("a client that requests its own oplocks gets promises only if the operator allows it") {
  World world(1);
  world.switch_write_behind_cached(false);
  REQUIRE(world.connect());
  const auto own = world.create("own", Disposition::overwrite_if, kBatch);
  REQUIRE(own);
  world.settle();
  for (int i = 0; i < 3; ++i) {
    world.server_idle = true;
    const auto id = world.send_write(*own, static_cast<std::uint64_t>(i) * 5, "hello");
    world.settle();
    CHECK_FALSE(world.answers.contains(id));
    world.server_idle = false;
    CHECK(world.status(id) == Status::success);
  }
  CHECK(world.near_counters().promises_made == 0);
  CHECK(world.near_counters().unpromised_files == 1);
  CHECK(world.near().reason() == smb::reasons::smb_client_caches);
  CHECK(world.near().leave_alone() == smb::reasons::optimised);
  const auto on_behalf = world.create("on behalf", Disposition::overwrite_if, kNone);
  REQUIRE(on_behalf);
  world.settle();
  world.server_idle = true;
  CHECK(world.answers.contains(world.send_write(*on_behalf, 0, "hello")));
  world.server_idle = false;
  world.switch_write_behind_cached(true);
  world.settle();
  CHECK(world.status(world.send_write(*own, 15, "hello")) == Status::success);
  CHECK(world.status(world.send_close(*own)) == Status::success);
  CHECK(world.near_counters().promises_made == 2);
  CHECK(world.server.files["own"] == "hellohellohellohello");
}

TEST_CASE("FLUSH and SET_INFO wait for the server, also for an empty file") {
  World world(1);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, GENERATE(kBatch, kNone));
  REQUIRE(file);
  world.settle();
  world.server_idle = true;
  const auto ids = {world.send_flush(*file), world.send_end_of_file(*file, 0), world.send_times(*file)};
  world.settle();
  for (const auto id : ids) CHECK_FALSE(world.answers.contains(id));
  world.server_idle = false;
  for (const auto id : ids) CHECK(world.status(id) == Status::success);
  CHECK(world.near_counters().promises_made == 0);
}

TEST_CASE("a write that may exceed a file system's limit is left to the server") {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 31;
  World world(1);
  REQUIRE(world.connect());
  world.server.keeps_data = false;
  const auto file = world.create("a", Disposition::overwrite_if, kNone);
  REQUIRE(file);
  world.settle();
  const std::string data(65536, 'x');
  const auto is_promised = [&](std::uint64_t end) {
    world.server_idle = true;
    const auto id = world.send_write(*file, end - data.size(), data);
    world.settle();
    const bool early = world.answers.contains(id);
    world.server_idle = false;
    CHECK(world.status(id) == Status::success);
    world.settle();
    return early;
  };
  CHECK(is_promised(kLimit - 65536));
  CHECK_FALSE(is_promised(kLimit - 65535));
  CHECK_FALSE(is_promised(kLimit));
  CHECK(is_promised(kLimit + 65536));  // 2 GiB are not its limit, then
  CHECK(is_promised(2 * kLimit - 65536));
  CHECK_FALSE(is_promised(2 * kLimit));
  CHECK(is_promised(4 * kLimit - 65536));
  CHECK_FALSE(is_promised(16 * kLimit));
  CHECK(is_promised(4 * kLimit));
}

TEST_CASE("without an oplock, with write-through, or near the end of the disk nothing is promised") {
  World world(2);
  REQUIRE(world.connect());
  SECTION("no oplock") {
    world.server.oplocks = false;
    const auto file = world.create("a", Disposition::overwrite_if, kBatch);
    world.settle();
    CHECK(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  }
  SECTION("opened for write-through") {
    const auto file = world.create("a", Disposition::overwrite_if, kBatch, create_options::write_through);
    world.settle();
    CHECK(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  }
  SECTION("unbuffered") {
    const auto file =
        world.create("a", Disposition::overwrite_if, kBatch, create_options::no_intermediate_buffering);
    world.settle();
    CHECK(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  }
  SECTION("written through") {
    const auto file = world.create("a", Disposition::overwrite_if, kBatch);
    world.settle();
    CHECK(world.status(world.send_write(*file, 0, "hello", kWriteThrough)) == Status::success);
  }
  SECTION("no room") {
    world.server.available_bytes = 1 << 20;
    const auto file = world.create("a", Disposition::overwrite_if, kBatch);
    world.settle();
    CHECK(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  }
  SECTION("opened without the right to write data") {
    world.create("a", Disposition::overwrite_if, kNone);
    const auto file = world.create("b", Disposition::overwrite_if, kBatch, 0, access::append_data);
    world.settle();
    CHECK(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  }
  CHECK(world.near_counters().promises_made == 0);
}

TEST_CASE("jcifs-ng, recognised by its repeated machine number, gets no promises") {
  World world(1);
  world.client = 0x1122334455667788;
  const bool is_jcifs = GENERATE(true, false);
  world.security = std::string("NTLMSSP") + std::string(20, '\0') + std::string("\1\0\0\0\0\0\0\0", 8) +
                   (is_jcifs ? "\x88\x77\x66\x55\x44\x33\x22\x11" : "another.");
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kNone);
  REQUIRE(file);
  world.settle();
  world.server_idle = true;
  CHECK(world.answers.contains(world.send_write(*file, 0, "hello")) == !is_jcifs);
  CHECK(world.near().reason() == (is_jcifs ? smb::reasons::smb_hides_errors : smb::reasons::optimised));
}

TEST_CASE("Linux gets no promises under an oplock that it did not ask for, unless the operator allows it") {
  const auto far = std::make_shared<LostWrites>();
  World world(1, std::make_shared<LostWrites>(), std::make_shared<Channels>(), {}, far);
  const std::string oid("\x2a\x86\x48\x86\xf7\x12\x01\x02\x02");
  // Its ClientGuid here is none of Linux.
  const auto [is_linux, security] =
      GENERATE_COPY(std::pair(true, std::string("NTLMSSP\0\1\0\0\0\x35\x82\x08\xe2", 16)),
                    std::pair(false, "`H..NTLMSSP" + oid), std::pair(false, oid));
  const bool is_allowed = GENERATE(false, true);
  world.switch_write_behind_cached(is_allowed);
  world.security = security;
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kNone);
  REQUIRE(file);
  world.settle();
  world.server_idle = true;
  CHECK(world.answers.contains(world.send_write(*file, 0, "hello")) == (is_allowed || !is_linux));
  CHECK(world.near().reason() ==
        (is_allowed || !is_linux ? smb::reasons::optimised : smb::reasons::smb_hides_errors));
  world.settle();
  world.far().twin_lost();
  CHECK(far->waiting() == (is_allowed || !is_linux ? 1 : 0));  // without promises nothing is in doubt
}

TEST_CASE(
    "jcifs-ng that logs in with Kerberos, recognised by the abilities that it announces, gets no promises") {
  World world(1);
  const auto [is_jcifs, abilities] =
      GENERATE(std::pair(true, 0x01u), std::pair(true, 0x41u), std::pair(false, 0x00u),
               std::pair(false, 0x40u), std::pair(false, 0x05u));
  const auto oid = GENERATE("\x2a\x86\x48\x86\xf7\x12\x01\x02\x02", "\x2a\x86\x48\x82\xf7\x12\x01\x02\x02");
  world.client_capabilities = abilities;
  world.security = std::string(20, '\0') + oid + "a ticket";
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kNone);
  REQUIRE(file);
  world.settle();
  world.server_idle = true;
  CHECK(world.answers.contains(world.send_write(*file, 0, "hello")) == !is_jcifs);
  CHECK(world.near().reason() == (is_jcifs ? smb::reasons::smb_hides_errors : smb::reasons::optimised));
}

TEST_CASE("in any order files contain the client's writes and reads match the client's view") {
  std::uint64_t promised = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    World world(seed);
    world.at_each_step = [&] { REQUIRE(promises_add_up(world)); };
    world.server.files["a"] = random_bytes(random, 5000);
    std::string expected = world.server.files["a"];
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::open_if, random() % 2 ? kBatch : kNone);
    REQUIRE(file);
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t offset = random() % 6000;
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const std::string data = random_bytes(random, 1 + random() % 1500);
          REQUIRE(world.status(world.send_write(*file, offset, data)) == Status::success);
          apply(expected, offset, data);
          break;
        }
        case 4:
        case 5: {
          const auto answer = world.wait(world.send_read(*file, offset, 1000));
          REQUIRE(answer);
          if (offset >= expected.size()) {
            REQUIRE(answer->header().status == Status::end_of_file);
          } else {
            REQUIRE(answer->header().status == Status::success);
            REQUIRE(as_text(parse_read_response(answer->first().bytes)->data) ==
                    expected.substr(offset, 1000));
          }
          break;
        }
        case 6: {
          REQUIRE(world.status(world.send_flush(*file)) == Status::success);
          REQUIRE(world.server.files["a"] == expected);
          break;
        }
        default: {
          const auto answer = world.wait(world.send_query_info(*file, file_info::standard));
          REQUIRE(answer);
          const auto info = parse_buffer_response(answer->first().bytes);
          REQUIRE(info.has_value());
          REQUIRE(load_le<std::uint64_t>(info->buffer, 8) == expected.size());
        }
      }
    }
    REQUIRE(world.status(world.send_close(*file)) == Status::success);
    REQUIRE(world.server.files["a"] == expected);
    world.settle();
    REQUIRE_FALSE(world.aborted);
    REQUIRE(world.near().quiet());
    REQUIRE(world.far().quiet());
    promised += world.near_counters().promises_made;
  }
  CHECK(promised > 1000);
}

TEST_CASE("a break at any moment is acknowledged after all promised writes") {
  int breaks = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    World world(seed);
    const bool asked = seed % 2;
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::overwrite_if, asked ? kBatch : kNone);
    REQUIRE(file);
    world.settle();
    std::string expected;
    const int when = static_cast<int>(random() % 60);
    int steps = 0;
    bool broken = false;
    world.at_each_step = [&] {
      if (++steps == when) broken = world.server.take_oplock(random() % 2 ? OplockLevel::level_ii : kNone);
      REQUIRE(promises_add_up(world));
    };
    for (int i = 0; i < 20; ++i) {
      const std::string data = random_bytes(random, 100);
      const std::uint64_t offset = random() % 2000;
      REQUIRE(world.status(world.send_write(*file, offset, data)) == Status::success);
      apply(expected, offset, data);
      world.step();
      if (!world.unsolicited.empty()) {
        REQUIRE(asked);  // the client knows of no other oplock
        const auto notification = parse_break(world.unsolicited.front().first().bytes);
        world.unsolicited.clear();
        world.acknowledge(*file, std::get<OplockBreak>(*notification).level);
      }
    }
    world.settle();
    if (!world.unsolicited.empty()) world.acknowledge(*file, kNone);
    world.settle();
    CHECK_FALSE(world.server.breaking());
    CHECK(world.server.early_breaks == 0);
    CHECK(world.status(world.send_close(*file)) == Status::success);
    CHECK(world.server.files["a"] == expected);
    breaks += broken;
  }
  CHECK(breaks > 100);
}

TEST_CASE("after a break nothing is promised any more") {
  World world(5);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kNone);
  world.settle();
  REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  REQUIRE(world.server.take_oplock(kNone));
  world.settle();
  CHECK_FALSE(world.server.breaking());
  world.server_idle = true;
  const auto id = world.send_write(*file, 0, "hello");
  world.settle();
  CHECK_FALSE(world.answers.contains(id));
}

TEST_CASE("a CANCEL reaches the server after its request, even if that waits for an id") {
  int waited = 0;
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.server.most_free_ids = 12;
    world.server.files["a"] = "12345";
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::open, kNone, 0, access::read_data);
    REQUIRE(file);
    world.settle();
    world.server.puts_off = Command::flush;
    std::vector<MessageId> asked;
    for (int i = 0; i < 14; ++i) asked.push_back(world.send_flush(*file));
    world.settle();
    waited += world.far().queued_bytes() > 0;
    world.send_cancel(asked.back());
    world.settle();
    world.server.puts_off.reset();
    world.settle();
    for (MessageId id : asked) CHECK(world.status(id) == Status::success);
    CHECK(world.server.cancelled.size() == 1);
    CHECK_FALSE(world.aborted);
    CHECK(world.far().queued_bytes() == 0);
  }
  CHECK(waited > 0);
}

TEST_CASE("more than the line carries in two seconds is not promised, and is answered when there is room") {
  World world(7);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kBatch);
  world.settle();
  world.server_idle = true;
  const std::string data(1 << 19, 'x');
  std::vector<MessageId> ids;
  for (std::uint64_t i = 0; i < 6; ++i) ids.push_back(world.send_write(*file, i << 19, data));
  world.settle();
  const auto answered =
      std::count_if(ids.begin(), ids.end(), [&](MessageId id) { return world.answers.contains(id); });
  CHECK(answered == 3);  // of 2,000,000 bytes
  world.server_idle = false;
  for (MessageId id : ids) CHECK(world.status(id) == Status::success);
  CHECK(world.status(world.send_close(*file)) == Status::success);
  CHECK(world.server.files["a"].size() == 6u << 19);
}

}  // namespace longhaul::smb::smb2::model
