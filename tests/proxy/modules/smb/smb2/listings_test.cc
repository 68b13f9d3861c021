// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

std::vector<std::string> names_in(const Message& answer) {
  const auto response = parse_buffer_response(answer.first().bytes);
  REQUIRE(response.has_value());
  const auto entries = parse_listing(file_info::names, Slice::copy_of(response->buffer));
  REQUIRE(entries.has_value());
  std::vector<std::string> names;
  for (const ListingEntry& entry : *entries) {
    std::string name;
    for (std::size_t i = 0; i < entry.name.size(); i += 2) name += entry.name[i];
    names.push_back(name);
  }
  return names;
}

std::vector<std::string> many_names(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("file" + std::to_string(i));
  return names;
}

std::optional<FileId> open_directory(World& world) {
  return world.create("dir", Disposition::open, kNone, create_options::directory_file,
                      access::read_data | access::read_attributes);
}

// Portion by portion, of `bytes` each; only the first question has `flags`. `told` comes after each portion.
void list_to_the_end(
    World& world, const FileId& directory, std::uint32_t bytes, std::uint8_t flags,
    std::vector<std::string>& seen, const std::function<void(int portion)>& told = [](int) {}) {
  for (int portion = 0;; ++portion, flags = 0) {
    const auto answer = world.wait(world.send_query_directory(directory, flags, bytes));
    REQUIRE(answer);
    if (answer->header().status == Status::no_more_files) return;
    const auto names = names_in(*answer);
    seen.insert(seen.end(), names.begin(), names.end());
    told(portion);
  }
}

// After some portions the client itself changes what is in the directory.
void list_the_rest(World& world, const FileId& directory, std::vector<std::string>& seen) {
  list_to_the_end(world, directory, 200, 0, seen, [&](int portion) {
    if (portion != 3) return;
    world.settle();
    // A new file appears where the listing has not been yet, an old one goes.
    REQUIRE(world.create("new", Disposition::overwrite_if, kNone));
    world.server.listing.pop_back();
    world.server.listing.push_back("new");
  });
}

// In one compound. `meanwhile`: before its answer is waited for.
FileId open_and_list(
    World& world, std::uint32_t bytes, std::vector<std::string>& seen,
    const std::function<void()>& meanwhile = [] {}) {
  const auto [create, first] = world.send_create_and_list("dir", bytes);
  meanwhile();
  const auto directory = world.opened(create);
  REQUIRE(directory);
  const auto begun = world.wait(first);
  REQUIRE(begun);
  seen = names_in(*begun);
  REQUIRE_FALSE(seen.empty());
  return *directory;
}

}  // namespace

TEST_CASE("a listing is returned complete, once and in order, in portions of any size") {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    World world(seed);
    world.server.listing = many_names(static_cast<int>(random() % 200));
    REQUIRE(world.connect());
    const auto directory = open_directory(world);
    REQUIRE(directory);
    std::vector<std::string> seen;
    for (;;) {
      const std::uint8_t flags = random() % 10 ? 0 : query_directory_flags::return_single_entry;
      const auto answer = world.wait(
          world.send_query_directory(*directory, flags, 100 + static_cast<std::uint32_t>(random() % 1000)));
      REQUIRE(answer);
      if (answer->header().status != Status::success) {
        CHECK(answer->header().status == (seen.empty() ? Status::no_such_file : Status::no_more_files));
        break;
      }
      const auto names = names_in(*answer);
      REQUIRE_FALSE(names.empty());
      seen.insert(seen.end(), names.begin(), names.end());
      for (auto i = random() % 5; i > 0; --i) world.step();
    }
    CHECK(seen == world.server.listing);
    CHECK(world.status(world.send_close(*directory)) == Status::success);
    world.settle();
    CHECK(world.near().quiet());
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("only the first query of a listing costs a round trip") {
  World world(1);
  world.server.listing = many_names(500);
  REQUIRE(world.connect());
  const auto directory = open_directory(world);
  REQUIRE(world.wait(world.send_query_directory(*directory, 0, 1000)));
  world.settle();
  world.server_idle = true;
  std::vector<std::string> rest;
  list_to_the_end(world, *directory, 1000, 0, rest);
  CHECK(rest.size() == 490);
}

TEST_CASE("this client's changes are visible in the rest of a listing, and nothing appears twice") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    World world(seed);
    world.server.listing = many_names(100);
    REQUIRE(world.connect());
    const auto directory = open_directory(world);
    std::vector<std::string> seen;
    list_the_rest(world, *directory, seen);
    CHECK(seen == world.server.listing);
  }
}

TEST_CASE(
    "a listing that starts in the compound that opens its directory is returned once, despite changes") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.server.listing = many_names(100);
    REQUIRE(world.connect());
    std::vector<std::string> seen;
    const FileId directory = open_and_list(world, 200, seen);
    list_the_rest(world, directory, seen);
    CHECK(seen == world.server.listing);
  }
}

TEST_CASE("a listing that starts in the compound that opens its directory costs no further round trip") {
  World world(2);
  world.server.listing = many_names(500);
  REQUIRE(world.connect());
  for (int i = 0; i < 2; ++i) {
    world.server_idle = false;
    std::vector<std::string> seen;
    const FileId directory = open_and_list(world, 1000, seen);
    world.settle();
    world.server_idle = true;
    list_to_the_end(world, directory, 1000, 0, seen);
    CHECK(seen == world.server.listing);
  }
}

TEST_CASE("changes made while the compound that opens and lists is under way are visible in the rest") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.server.listing = many_names(100);
    REQUIRE(world.connect());
    std::vector<std::string> seen;
    const FileId directory = open_and_list(world, 200, seen, [&] {
      // Comes to the server when it has listed the beginning, and may come after it has listed all for us.
      REQUIRE(world.create("new", Disposition::overwrite_if, kNone));
      world.server.listing.back() = "new";
    });
    list_to_the_end(world, directory, 200, 0, seen);
    CHECK(seen == world.server.listing);
  }
}

TEST_CASE("a listing restarted after the feature was switched off is returned complete by the server") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.server.listing = many_names(300);
    REQUIRE(world.connect());
    const auto directory = open_directory(world);
    REQUIRE(world.wait(world.send_query_directory(*directory, 0, 200)));
    world.switch_metadata(false);
    std::vector<std::string> seen;
    list_to_the_end(world, *directory, 200, query_directory_flags::restart_scans, seen);
    CHECK(seen == world.server.listing);
  }
}

TEST_CASE("a listing is complete if the server leaves no message id for our own queries") {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    for (std::uint64_t window : {2u, 3u, 17u, 18u, 40u}) {
      INFO("seed " << seed << ", window " << window);
      World world(seed);
      world.server.listing = many_names(100);
      world.server.most_free_ids = window;
      REQUIRE(world.connect());
      const auto directory = open_directory(world);
      REQUIRE(directory);
      std::vector<std::string> seen;
      list_the_rest(world, *directory, seen);
      CHECK(seen == world.server.listing);
    }
  }
}

TEST_CASE("a listing restarts when the client requests it") {
  World world(3);
  world.server.listing = many_names(50);
  REQUIRE(world.connect());
  const auto directory = open_directory(world);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(world.wait(world.send_query_directory(*directory, 0, 1000)));
    if (i == 1) world.settle();
    const auto again =
        world.wait(world.send_query_directory(*directory, query_directory_flags::restart_scans, 10000));
    REQUIRE(again);
    CHECK(names_in(*again).front() == "file0");
  }
}

TEST_CASE("the rest of a listing is never older than a second, for servers that report nothing") {
  using namespace std::chrono_literals;
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.switch_relaxed(false);
    world.server.listing = many_names(100);
    REQUIRE(world.connect());
    const auto directory = open_directory(world);
    std::vector<std::string> seen;
    int listed = 0;
    list_to_the_end(world, *directory, 200, 0, seen, [&](int portion) {
      if (portion > 6) return;
      world.settle();
      if (portion == 1) listed = world.server.done[Command::query_directory];
      world.pass(150ms);
      if (portion == 5) {  // a second has not passed: all was answered here
        CHECK(world.server.done[Command::query_directory] == listed);
        world.server.listing.pop_back();
        world.server.listing.push_back("new");
        world.pass(1s);
      }
    });
    CHECK(world.server.done[Command::query_directory] > listed);
    CHECK(world.far_counters().changes_noticed == 0);
    CHECK(seen == world.server.listing);
    CHECK(world.status(world.send_close(*directory)) == Status::success);
  }
}

TEST_CASE("a listing continues at a server that does not confirm a watch") {
  using namespace std::chrono_literals;
  World world(1);
  world.switch_relaxed(false);
  world.server.confirms_watches = false;
  world.server.listing = many_names(30);
  REQUIRE(world.connect());
  const auto directory = open_directory(world);
  REQUIRE(world.wait(world.send_query_directory(*directory, 0, 200)));
  const MessageId second = world.send_query_directory(*directory, 0, 200);
  world.settle();
  world.pass(6s);
  REQUIRE(world.wait(second));
  std::vector<std::string> rest;
  list_to_the_end(world, *directory, 200, 0, rest);
  CHECK(rest.back() == world.server.listing.back());
}

}  // namespace longhaul::smb::smb2::model
