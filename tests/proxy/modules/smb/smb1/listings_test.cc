// SPDX-License-Identifier: Apache-2.0
// Listings that are fetched ahead while their folder is watched: what changes ends it, and nothing is missing
// or told twice.
#include <set>

#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

Slice remove(std::string_view name, std::uint16_t mid) {
  return make_frame({.command = 0x06, .tid = kTid, .uid = kUid, .mid = mid}, Fields{}.u16(0).bytes,
                    Fields{}.u8(4).text(name).u8(0).bytes);
}

// A client that lists D, page by page; with metadata as a server shows them.
struct Lister {
  Pair pair;
  Surroundings surroundings;
  std::map<std::string, std::uint64_t> sizes;
  std::vector<std::string> names;
  bool by_name = false, end = false;
  std::uint16_t mid = 10;

  explicit Lister(int files = 95) {
    surroundings.line_bytes_per_second = 1'000'000;
    surroundings.round_trip = std::chrono::milliseconds(100);
    surroundings.features.write_behind_cached = true;
    pair.near.on_surroundings(pair.now, surroundings);
    pair.far.on_surroundings(pair.now, surroundings);
    for (int i = 0; i < files; ++i) pair.server.files["FILE" + std::to_string(1000 + i)] = "x";
  }

  static Buffer wide(std::string_view text) {
    Buffer letters;
    for (const char letter : text) letters.insert(letters.end(), {std::byte(letter), std::byte{0}});
    letters.insert(letters.end(), 2, std::byte{0});
    return letters;
  }

  Slice first() {
    return unicode(
        trans2(1, Fields{}.u16(0x16).u16(10).u16(6).u16(0x104).u32(0).raw(wide("\\D\\*")).bytes, ++mid));
  }
  Slice next() {
    const unsigned flags = by_name ? 6 : 14;
    const Buffer name = wide(by_name ? names.back() : "");
    return unicode(trans2(2, Fields{}.u16(0x55).u16(10).u16(0x104).u32(0).u16(flags).raw(name).bytes, ++mid));
  }
  void take(const Slice& frame, bool is_first = false) {
    const Message message = parsed(frame);
    REQUIRE(message.header.status == 0);
    REQUIRE(message.header.mid == mid);
    const auto part = parse_transaction(message, message.first());
    REQUIRE(part.has_value());
    const auto reply =
        is_first ? parse_find_first_reply(part->parameters) : parse_find_next_reply(part->parameters);
    for (Bytes at = part->data; reply->count != 0;) {
      std::string name;
      for (std::size_t i = 0; i < load_le<std::uint32_t>(at, 60); i += 2)
        name.push_back(static_cast<char>(at[94 + i]));
      names.push_back(name);
      sizes[name] = load_le<std::uint64_t>(at, 40);
      const auto following = load_le<std::uint32_t>(at, 0);
      if (following == 0) break;
      at = at.subspan(following);
    }
    end = reply->end_of_search;
  }
  void begin() {
    take(pair.ask(first()), true);
    pair.run();
  }
  bool take_here() {
    const auto answer = pair.ask_here(next());
    if (answer) take(*answer);
    return answer.has_value();
  }
  // How many of the pages came over the line.
  int take_all() {
    int asked = 0;
    while (!end) {
      if (!take_here()) {
        ++asked;
        take(pair.only_answer());
      }
      pair.run();
    }
    return asked;
  }
  bool is_in_order() const {
    return std::is_sorted(names.begin(), names.end()) &&
           std::adjacent_find(names.begin(), names.end()) == names.end();
  }
};

TEST_CASE("SMB1: a listing is fetched ahead while its directory is watched") {
  Lister lister;
  lister.by_name = GENERATE(false, true);
  lister.begin();
  CHECK(lister.pair.server.listens());
  CHECK(lister.pair.server.folders() == 1);
  CHECK(lister.take_all() == 0);
  CHECK(lister.names.size() == 95);
  CHECK(lister.is_in_order());
  CHECK(lister.pair.server.seen[0x34] == 1);  // it asked to be closed at its end
  lister.pair.now += std::chrono::seconds(2);
  lister.pair.far.on_timeout(lister.pair.now);
  lister.pair.ask(flush(1, 5));
  CHECK(lister.pair.server.folders() == 0);
}

TEST_CASE("SMB1: a listing that fits in one answer is not watched") {
  Lister lister(5);
  lister.begin();
  CHECK(lister.end);
  CHECK(lister.pair.server.seen[0xA2] == 0);
}

TEST_CASE("SMB1: a change in a listed directory is visible in the rest of the listing") {
  Lister lister;
  lister.by_name = GENERATE(false, true);
  lister.begin();
  CHECK(lister.take_here());
  lister.pair.run();
  lister.pair.server.files["FILE1050"] = "longer";
  lister.pair.server.files.erase("FILE1070");
  lister.pair.server.notify("FILE1050");
  lister.pair.run();
  CHECK_FALSE(lister.take_here());
  lister.take(lister.pair.only_answer());
  lister.take_all();
  CHECK(lister.sizes["FILE1050"] == 6);
  CHECK(lister.names.size() == 94);
  CHECK(lister.is_in_order());
  CHECK(lister.pair.far.counters().changes_noticed == 1);
}

TEST_CASE("SMB1: the rest of a listing is never older than a second, for servers that report nothing") {
  using namespace std::chrono_literals;
  Lister lister;
  lister.by_name = GENERATE(false, true);
  lister.begin();
  for (int turn = 0; turn < 3; ++turn) {
    lister.pair.pass(300ms);
    lister.pair.run();
    CHECK(lister.take_here());
  }
  lister.pair.server.files["FILE1050"] = "longer";
  lister.pair.server.files.erase("FILE1070");
  lister.pair.pass(200ms);
  lister.pair.run();
  CHECK_FALSE(lister.take_here());
  lister.take(lister.pair.only_answer());
  lister.take_all();
  CHECK(lister.sizes["FILE1050"] == 6);
  CHECK(lister.names.size() == 94);
  CHECK(lister.is_in_order());
  CHECK(lister.pair.far.counters().changes_noticed == 0);
}

TEST_CASE("SMB1: a listing continues to its end although the server has lost the client's position") {
  Lister lister;
  lister.by_name = GENERATE(false, true);
  lister.begin();
  lister.pair.server.files.erase(lister.names.back());
  lister.pair.server.notify(lister.names.back(), 2);
  lister.pair.run();
  CHECK_FALSE(lister.take_here());
  lister.take(lister.pair.only_answer());
  lister.take_all();
  CHECK(lister.names.size() == 95);
  CHECK(lister.is_in_order());
}

TEST_CASE("SMB1: a directory that cannot be watched is listed by the client itself") {
  Lister lister;
  lister.pair.server.refuses_folders = true;
  lister.begin();
  CHECK(lister.take_all() == 9);
  CHECK(lister.names.size() == 95);
  CHECK(lister.pair.server.seen[0x32] == 10);
}

TEST_CASE("SMB1: after a change by the client no older answer is repeated") {
  Lister lister;
  lister.begin();
  lister.pair.server.files["FILE1050"] = "longer";
  lister.pair.ask(remove("D\\FILE2000", 5));
  CHECK_FALSE(lister.take_here());
  lister.take(lister.pair.only_answer());
  lister.take_all();
  CHECK(lister.sizes["FILE1050"] == 6);
  CHECK(lister.names.size() == 95);
  CHECK(lister.is_in_order());
}

TEST_CASE("SMB1: a listed directory is not kept open against its client") {
  Lister lister;
  lister.begin();
  CHECK(lister.pair.server.folders() == 1);
  lister.pair.ask(make_frame({.command = 0x07, .tid = kTid, .uid = kUid, .mid = 5}, Fields{}.u16(0).bytes,
                             Fields{}.u8(4).text("D").u8(0).u8(4).text("E").u8(0).bytes));
  CHECK(lister.pair.server.folders_at_rename == 0);
  lister.take_all();
  CHECK(lister.names.size() == 95);
}

TEST_CASE("SMB1: after a silence of the far half, listing data fetched ahead is not used") {
  Lister lister;
  lister.begin();
  CHECK(lister.take_here());
  lister.pair.run();
  lister.pair.now += std::chrono::seconds(60);
  lister.surroundings.contact.since = lister.surroundings.contact.confirmed =
      lister.pair.now - std::chrono::seconds(50);
  lister.pair.near.on_surroundings(lister.pair.now, lister.surroundings);
  CHECK_FALSE(lister.take_here());
  lister.take(lister.pair.only_answer());
  lister.take_all();
  CHECK(lister.names.size() == 95);
  CHECK(lister.is_in_order());
}

// The client has its first page and asks for the next, which the far half fetches from a server that waits.
void wait_for_second_page(Lister& lister) {
  Pair& pair = lister.pair;
  pair.line(1'000'000);  // relaxed: the next page is fetched at once
  pair.client_sends(lister.first());
  while (pair.move_up()) {
  }
  pair.server_answers();
  pair.server_waits = true;
  pair.run();
  lister.take(*pair.answer(), true);
  pair.client_sends(lister.next());
}

TEST_CASE("SMB1: a FIND_NEXT2 is answered although the client ends its search meanwhile") {
  Lister lister;
  Pair& pair = lister.pair;
  wait_for_second_page(lister);
  pair.client_sends(
      make_frame({.command = 0x34, .tid = kTid, .uid = kUid, .mid = 9}, Fields{}.u16(0x55).bytes, {}));
  pair.run();
  CHECK(pair.at_client.empty());
  pair.server_waits = false;
  pair.run();
  std::set<std::uint16_t> answered;
  while (const auto answer = pair.answer()) answered.insert(mid_of(*answer));
  CHECK(answered == std::set<std::uint16_t>{9, lister.mid});
  CHECK(pair.far.quiet());
  CHECK(pair.near.quiet());
}

// The far half swallows both and pushes one page.
TEST_CASE("SMB1: a client that sends a second FIND_NEXT2 of a search before the first is answered is reset") {
  Lister lister;
  Pair& pair = lister.pair;
  wait_for_second_page(lister);
  CHECK_FALSE(pair.aborted);
  pair.client_sends(lister.next());
  CHECK(pair.aborted);
}

TEST_CASE("SMB1: with any crossing of messages each entry is listed once and each request answered once") {
  // In the last ones the server loses the client's position twice, one answer apart.
  const unsigned seed = GENERATE(range(1u, 201u), values({617u, 1079u, 1961u, 2493u}));
  CAPTURE(seed);
  std::mt19937 random(seed);
  Lister lister;
  lister.by_name = random() % 2;
  lister.pair.client_sends(lister.first());
  bool is_first = true;
  for (int step = 0; !lister.end && step < 2000; ++step) {
    lister.pair.run_random(random, static_cast<int>(random() % 6));
    if (random() % 12 == 0) lister.pair.server.notify("FILE1090");
    if (random() % 20 == 0 && !lister.names.empty()) {  // where the client is
      const std::string gone = lister.names.back();
      if (lister.pair.server.files.erase(gone)) lister.pair.server.notify(gone, 2);
    }
    if (random() % 30 == 0) lister.pair.client_sends(remove("D\\FILE2000", 3));
    if (random() % 10 == 0) {
      lister.pair.now += std::chrono::milliseconds(200);
      lister.pair.far.on_timeout(lister.pair.now);
    }
    while (const auto answer = lister.pair.answer()) {
      if (mid_of(*answer) == 3) continue;
      lister.take(*answer, std::exchange(is_first, false));
      if (!lister.end) lister.pair.client_sends(lister.next());
    }
  }
  CHECK(lister.end);
  lister.pair.run();
  while (const auto answer = lister.pair.answer()) CHECK(mid_of(*answer) == 3);
  CHECK(lister.names.size() == 95);
  CHECK(lister.is_in_order());
  CHECK_FALSE(lister.pair.aborted);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
