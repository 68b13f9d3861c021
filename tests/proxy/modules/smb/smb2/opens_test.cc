// SPDX-License-Identifier: Apache-2.0
// Opens made ahead of the client's (near_opens.h, far_opens.h).
#include "proxy/modules/smb/smb2/model.h"
#include "proxy/modules/smb/smb2/plain_open.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using model::kNone;
using model::World;

namespace {

using namespace std::chrono_literals;

// A folder of small files, and a client that reads them.
struct Folder : World {
  Folder(std::uint32_t seed, int count) : World(seed) {
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(1000 + i);
      names.push_back("file" + number);
      server.files[path(i)] = "bytes of " + number;
    }
    server.listing = names;
    // Not as they are sorted.
    std::reverse(server.listing.begin(), server.listing.end());
    REQUIRE(connect());
  }
  std::string path(int i) const { return "dir\\" + names.at(static_cast<std::size_t>(i)); }

  void list() {
    const auto directory = create("dir", Disposition::open, kNone, create_options::directory_file,
                                  access::read_data | access::read_attributes);
    REQUIRE(directory);
    while (status(send_query_directory(*directory, 0, 1000)) == Status::success) {
    }
    REQUIRE(status(send_close(*directory)) == Status::success);
  }
  MessageId open(int i) {
    return send_create(path(i), Disposition::open, kNone, 0, access::read_data | access::synchronize);
  }
  std::string read(const FileId& file) {
    const auto answer = wait(send_read(file, 0, 4096));
    REQUIRE(answer);
    REQUIRE(answer->header().status == Status::success);
    return std::string(as_text(parse_read_response(answer->first().bytes)->data));
  }
  // Opens, reads and closes it.
  std::string read(int i) {
    const auto file = opened(open(i));
    REQUIRE(file);
    std::string data = read(*file);
    REQUIRE(status(send_close(*file)) == Status::success);
    return data;
  }
  void read_in_order(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      CHECK(read(i) == server.files[path(i)]);
      settle();
    }
  }
  // All that was opened ahead in vain is closed, and the client believes nothing that is not so.
  void end() {
    settle();
    pass(10s);
    settle();
    CHECK(server.open_files() == 0);
    CHECK_FALSE(server.breaking());
    CHECK_FALSE(aborted);
    CHECK(near().quiet());
    CHECK(far().quiet());
    const modules::Counters& counters = near_counters();
    CHECK(counters.opens_ahead == counters.opens_ahead_used + counters.opens_ahead_wasted);
  }

  std::vector<std::string> names;
};

}  // namespace

TEST_CASE("files that are read in sequence are opened ahead of the client") {
  Folder world(1, 40);
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
  Folder world(1, 40);
  const Buffer data(16, std::byte{});
  const auto open = [&](int i) {
    const std::string wide = model::utf16(world.path(i));
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
  const std::string name = model::utf16("dir\\file");
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
  Folder world(2, 40);
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
  Folder world(3, 20);
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
  Folder world(4, 100);
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

TEST_CASE("a second open of a file that is open ahead finds it closed") {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    Folder world(seed, 30);
    world.list();
    world.read_in_order(0, 8);
    // The same with another right, before or after what was opened ahead is known to the near half.
    const MessageId read = world.open(8);
    for (std::uint32_t i = seed % 7; i > 0; --i) world.step();
    const auto file =
        world.create(world.path(10), Disposition::open, kNone, 0, access::read_data | access::write_data);
    REQUIRE(file);
    CHECK(world.server.opens_of(world.path(10)) == 1);
    REQUIRE(world.status(world.send_write(*file, 0, "other")) == Status::success);
    REQUIRE(world.status(world.send_close(*file)) == Status::success);
    CHECK(world.server.met_oplocks == 0);
    const auto eight = world.opened(read);
    REQUIRE(eight);
    CHECK(world.read(*eight) == world.server.files[world.path(8)]);
    REQUIRE(world.status(world.send_close(*eight)) == Status::success);
    CHECK(world.read(10) == "other of 1010");
    world.end();
  }
}

TEST_CASE("no file is open ahead during a rename") {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    Folder world(seed, 30);
    world.list();
    world.read_in_order(0, 8);
    const auto directory = world.create("dir", Disposition::open, kNone, create_options::directory_file,
                                        access::delete_file | access::read_attributes);
    REQUIRE(directory);
    const auto file = world.opened(world.open(8));
    REQUIRE(file);
    REQUIRE(world.status(world.send_close(*file)) == Status::success);
    if (seed % 2) world.settle();
    const MessageId rename = world.send_rename(*directory);
    const bool waits = seed % 3;
    std::optional<MessageId> next;
    if (!waits) next = world.open(9);
    CHECK(world.status(rename) == Status::success);
    if (waits) CHECK(world.server.met_oplocks == 0);
    if (!next) next = world.open(9);
    REQUIRE(world.opened(*next));
    REQUIRE(world.status(world.send_close(*world.opened(*next))) == Status::success);
    REQUIRE(world.status(world.send_close(*directory)) == Status::success);
    world.end();
  }
}

TEST_CASE("each file is opened once, however many opens a client sends at a time") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Folder world(seed, 60);
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

TEST_CASE("another client can open a file that is open ahead, and the first client reads its writes") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Folder world(seed, 40);
    world.list();
    for (int i = 0; i < 40; ++i) {
      CHECK(world.read(i) == world.server.files[world.path(i)]);
      for (auto steps = random() % 30; steps > 0; --steps) world.step();
      if (random() % 3) continue;
      const int other = std::min(39, i + static_cast<int>(random() % 6));
      if (world.server.take_oplock(kNone, world.path(other))) {
        for (auto steps = random() % 30; steps > 0; --steps) world.step();
        // The client may come first, or the other.
        if (random() % 2 && other == i + 1) {
          ++i;
          CHECK(world.read(i) == world.server.files[world.path(i)]);
        }
        for (int steps = 0; world.server.breaking() && steps < 10'000; ++steps) world.step();
        REQUIRE_FALSE(world.server.breaking());
      }
      // Any other client with an open file reads from the server; so does this client.
      if (world.server.opens_of(world.path(other)) == 0)
        world.server.files[world.path(other)] = "written by another " + std::to_string(random());
    }
    world.end();
  }
}

TEST_CASE("a file that was opened ahead can be queried like any other, even if another client wants it") {
  constexpr std::uint32_t kLook = access::read_attributes | access::synchronize;
  std::uint64_t used = 0, looks_without_server = 0;
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Folder world(seed, 30);
    world.list();
    const auto size_of = [&](const FileId& file) {
      const auto answer = world.wait(world.send_query_info(file, file_info::standard));
      REQUIRE(answer);
      REQUIRE(answer->header().status == Status::success);
      return load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 8);
    };
    for (int i = 0; i < 30; ++i) {
      std::string& data = world.server.files[world.path(i)];
      const auto file = world.create(world.path(i), Disposition::open, kNone, 0, access::read_data | kLook);
      REQUIRE(file);
      const int creates = world.server.opens_of(world.path(i));
      const auto look = world.create(world.path(i), Disposition::open, kNone, 0, kLook);
      REQUIRE(look);
      const bool without_server = world.server.opens_of(world.path(i)) == creates;
      if (without_server) ++looks_without_server;
      for (auto steps = random() % 10; steps > 0; --steps) world.step();
      if (random() % 3 == 0 && world.server.take_oplock(kNone, world.path(i))) {
        for (int steps = 0; world.server.breaking() && steps < 10'000; ++steps) world.step();
        REQUIRE_FALSE(world.server.breaking());
        data = "written by another " + std::to_string(random());
      }
      // What was asked with an open of the server's own is told once, as it was then.
      const std::uint64_t size = size_of(*look);
      if (without_server) CHECK(size == data.size());
      CHECK(size_of(*file) == data.size());
      CHECK(world.read(*file) == data);
      const FileId first = random() % 2 ? *file : *look, last = first == *file ? *look : *file;
      REQUIRE(world.status(world.send_close(first)) == Status::success);
      if (random() % 2) CHECK(size_of(last) == data.size());
      REQUIRE(world.status(world.send_close(last)) == Status::success);
      for (auto steps = random() % 30; steps > 0; --steps) world.step();
    }
    used += world.near_counters().opens_ahead_used;
    world.end();
  }
  CHECK(used > 0);
  CHECK(looks_without_server > 0);
}

TEST_CASE("files opened ahead are unusable after a long silence between the halves") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Folder folder(seed, 40);
    folder.tell({.since = folder.now, .confirmed = folder.now, .heard = folder.now});
    folder.list();
    folder.read_in_order(0, 10);
    REQUIRE(folder.server.open_files() > 0);
    folder.tell({.since = folder.now - 1h, .confirmed = folder.now, .heard = folder.now});
    const auto heard = folder.now;
    folder.link_cut = true;
    REQUIRE(folder.server.take_oplock(kNone));
    folder.settle();
    folder.pass(heard + 11s - folder.now);
    folder.settle();
    CHECK(folder.server.breaking());
    const auto given = folder.near_counters().opens_ahead_used;
    const MessageId asked = folder.open(10);
    CHECK(folder.near_counters().opens_ahead_used == given);
    CHECK_FALSE(folder.answers.contains(asked));
    folder.pass(heard + 12s + 1ms - folder.now);
    folder.settle();
    CHECK_FALSE(folder.server.breaking());
    CHECK(folder.server.open_files() == 0);
    folder.link_cut = false;
    folder.tell({.since = folder.now, .confirmed = folder.now, .heard = folder.now});
    const auto file = folder.opened(asked);
    REQUIRE(file);
    CHECK(folder.read(*file) == folder.server.files[folder.path(10)]);
    REQUIRE(folder.status(folder.send_close(*file)) == Status::success);
    folder.end();
  }
}

TEST_CASE("files whose offers come during a long silence are opened and read like any others") {
  bool given_up = false;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Folder folder(seed, 40);
    folder.list();
    folder.read_in_order(0, 8);
    folder.order = World::Order::down_last;
    // What the far half opens next is on its way down when the client opens it.
    std::vector<MessageId> opens;
    for (int i = 8; i < 30; ++i) {
      opens.push_back(folder.open(i));
      // As long as the client reads what it opens, more is opened.
      if (const auto answer = folder.answers.find(opens.back()); answer != folder.answers.end())
        (void)folder.send_read(parse_create_response(answer->second.first().bytes)->file, 0, 4096);
      for (int step = 0; step < 20; ++step) folder.step();
    }
    // The near half uses none that comes now.
    const auto heard = folder.now - link::kApart - 1s;
    folder.tell({.since = TimePoint{} + 1ms, .confirmed = heard, .heard = folder.now});
    folder.order = World::Order::any;
    for (std::size_t i = 0; i < opens.size(); ++i) {
      const auto file = folder.opened(opens[i]);
      REQUIRE(file);
      CHECK(folder.read(*file) == folder.server.files[folder.path(static_cast<int>(i) + 8)]);
      REQUIRE(folder.status(folder.send_close(*file)) == Status::success);
    }
    given_up = given_up || folder.near_counters().opens_ahead_wasted > 0;
    folder.tell({.since = folder.now, .confirmed = folder.now, .heard = folder.now});
    folder.end();
  }
  CHECK(given_up);
}

TEST_CASE("a session that starts signing gets no files that were opened ahead") {
  Folder world(5, 30);
  world.list();
  world.read_in_order(0, 8);
  const MessageId echo =
      world.send({.credit_charge = 1, .command = Command::flush, .flags = header_flags::is_signed},
                 [](LittleEndianWriter& w) { w.u16(24), w.zeros(22); });
  REQUIRE(world.wait(echo));
  const std::uint64_t used = world.near_counters().opens_ahead_used;
  const auto file = world.opened(world.open(8));
  REQUIRE(file);
  CHECK(world.near_counters().opens_ahead_used == used);
  CHECK(world.read(*file) == world.server.files[world.path(8)]);
}
