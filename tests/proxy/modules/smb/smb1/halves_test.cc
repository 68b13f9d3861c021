// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

constexpr std::uint8_t kRead = 0x2E, kWrite = 0x2F, kClose = 0x04;
constexpr std::uint32_t kStatusDiskFull = 0xC000007F;

TEST_CASE("SMB1: a file is read without a round trip per block, under an oplock the client never asked for") {
  Pair pair;
  pair.server.files["F"] = some_bytes(1'000'000);
  const Slice opened = pair.ask(create("F", 10));
  const Message reply = parsed(opened);
  CHECK(parse_nt_create_reply(reply.first())->oplock == Oplock::none);
  const std::uint16_t fid = fid_of(opened);
  CHECK(pair.server.handles.at(fid).oplock == 2);
  std::string read_back;
  int here = 0;
  for (;;) {
    auto answer = pair.ask_here(read(fid, read_back.size(), 65000, 11));
    if (answer) ++here;
    pair.run();
    if (!answer) answer = pair.answer();
    REQUIRE(answer);
    REQUIRE(pair.at_client.empty());
    const std::string data = data_of(*answer);
    if (data.empty()) break;
    read_back += data;
  }
  CHECK(read_back == pair.server.files["F"]);
  CHECK(here >= 14);
  CHECK(pair.near.counters().round_trips_saved >= 16);
}

TEST_CASE("SMB1: a READ beyond the end and one that ends short say so") {
  Pair pair;
  pair.server.files["F"] = "0123456789";
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(data_of(pair.ask(read(fid, 4, 100, 11))) == "456789");
  CHECK(data_of(pair.ask(read(fid, 10, 100, 12))).empty());
  CHECK(data_of(pair.ask(read(fid, 1000, 100, 13))).empty());
  CHECK(data_of(pair.ask(read(fid, 0, 10, 14))) == "0123456789");
}

TEST_CASE("SMB1: writes are acknowledged here, and all lie in the file when CLOSE is answered") {
  Pair pair;
  const std::string content = some_bytes(500'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server_waits = true;
  std::size_t at = 0, here = 0;
  for (; at < content.size(); at += 50'000) {
    // The same MID again and again, as some clients do.
    auto answer = pair.ask_here(write(fid, at, as_bytes(content).subspan(at, 50'000), 11, 8));
    if (!answer) {
      pair.server_waits = false;
      pair.run();
      pair.server_waits = true;
      answer = pair.answer();
    } else {
      ++here;
    }
    REQUIRE(answer);
    REQUIRE(status_of(*answer) == 0);
    const Message message = parsed(*answer);
    REQUIRE(parse_write_reply(message.first())->count == 50'000);
  }
  CHECK(here == 10);
  pair.client_sends(close(fid, 12));
  while (pair.move_up()) {
  }
  CHECK(pair.server.seen[kClose] == 0);  // held until the writes are answered
  pair.server_waits = false;
  CHECK(status_of(pair.only_answer()) == 0);
  CHECK(pair.server.seen[kClose] == 1);
  CHECK(pair.server.files["F"] == content);
  CHECK(pair.near.audit().made == 10);
  CHECK(pair.near.audit().kept == 10);
  CHECK(pair.near.audit().adds_up());
}

TEST_CASE("SMB1: a write that fails late is told with the next answer that can carry it") {
  Pair pair;
  const std::string block = some_bytes(1000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server.failing_writes[1000] = kStatusDiskFull;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(block), 11)));
  REQUIRE(pair.ask_here(write(fid, 1000, as_bytes(block), 11)));
  SECTION("CLOSE") {
    CHECK(status_of(pair.ask(close(fid, 12))) == kStatusDiskFull);
    CHECK(pair.server.handles.empty());
  }
  SECTION("FLUSH, once") {
    CHECK(status_of(pair.ask(flush(fid, 12))) == kStatusDiskFull);
    CHECK(status_of(pair.ask(close(fid, 13))) == 0);
  }
  SECTION("WRITE, after which nothing is answered early") {
    pair.run();
    pair.client_sends(write(fid, 2000, as_bytes(block), 12));
    CHECK(pair.at_client.empty());
    CHECK(status_of(pair.only_answer()) == kStatusDiskFull);
    CHECK(status_of(pair.ask(close(fid, 13))) == 0);
  }
  CHECK(pair.near.audit().failed == 1);
  CHECK(pair.near.audit().reported == 1);
  CHECK_FALSE(pair.aborted);
}

TEST_CASE("SMB1: another's open breaks our oplock: promises are kept first, then the break is answered") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  pair.ask(read(fid, 0, 60'000, 11));
  const std::string block(1000, 'x');
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(block), 12)));
  pair.server_waits = true;
  pair.move_up();
  pair.server.break_oplock("F");
  pair.server_waits = false;
  CHECK_FALSE(pair.server.is_broken("F"));
  pair.run();
  CHECK(pair.at_client.empty());  // the client asked for no oplock and hears of none
  CHECK(pair.server.is_broken("F"));
  CHECK(pair.server.files["F"].substr(0, 1000) == block);
  // From now on others may write: nothing is answered from what was ahead, and nothing early.
  pair.server.files["F"].replace(0, 4, "ELSE");
  CHECK(data_of(pair.ask(read(fid, 0, 4, 13))) == "ELSE");
  CHECK_FALSE(pair.ask_here(write(fid, 0, as_bytes(block), 14)));
  pair.run();
  pair.at_client.clear();
  CHECK(status_of(pair.ask(close(fid, 15))) == 0);
  // And never again for this name.
  pair.ask(create("F", 16));
  CHECK(pair.server.handles.begin()->second.oplock == 0);
}

TEST_CASE(
    "SMB1: a client's own oplock is its own: breaks pass, its acknowledgement waits for what was promised") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  const Slice opened = pair.ask(create("F", 10, {.flags = 2}));
  const Message reply = parsed(opened);
  CHECK(parse_nt_create_reply(reply.first())->oplock == Oplock::exclusive);
  const std::uint16_t fid = fid_of(opened);
  const std::string block(1000, 'x');
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(block), 11)));
  while (pair.move_up()) {
  }
  pair.server.break_oplock("F");
  std::swap(pair.server.out.front(), pair.server.out.back());  // the break overtakes the write's answer
  pair.server_answers();
  pair.server_waits = true;
  while (pair.move_down()) {
  }
  REQUIRE(pair.at_client.size() == 1);
  CHECK(mid_of(*pair.answer()) == 0xFFFF);
  CHECK_FALSE(pair.ask_here(write(fid, 1000, as_bytes(block), 12)));
  pair.client_sends(oplock_ack(fid, 0));
  while (pair.move_up()) {
  }
  CHECK_FALSE(pair.server.is_broken("F"));
  pair.server_waits = false;
  pair.run();
  CHECK(pair.server.is_broken("F"));
  CHECK(pair.server.files["F"].substr(0, 1000) == block);
}

TEST_CASE(
    "SMB1: the same file opened again by the same client costs one round trip, and both see what was "
    "written") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100'000);
  const std::uint16_t first = fid_of(pair.ask(create("F", 10)));
  const std::string block(1000, 'x');
  REQUIRE(pair.ask_here(write(first, 0, as_bytes(block), 11)));
  const std::uint16_t second = fid_of(pair.ask(create("f", 12)));
  CHECK(data_of(pair.ask(read(second, 0, 1000, 13))) == block);
  const std::string other(1000, 'y');
  pair.ask(write(second, 0, as_bytes(other), 14));
  CHECK(data_of(pair.ask(read(first, 0, 1000, 15))) == other);
}

TEST_CASE("SMB1: CLOSE is answered here under a batch oplock when nothing is owed") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(data_of(pair.ask(read(fid, 0, 100, 11))).size() == 100);
  const auto answer = pair.ask_here(close(fid, 12));
  REQUIRE(answer);
  CHECK(status_of(*answer) == 0);
  pair.run();
  CHECK(pair.at_client.empty());
  CHECK(pair.server.handles.empty());
  // The FID comes back with the next open.
  CHECK(fid_of(pair.ask(create("F", 13))) == fid);
  CHECK(pair.near.quiet());
  CHECK(pair.far.quiet());
}

TEST_CASE("SMB1: signed sessions are left alone") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100);
  Slice frame = create("F", 10);
  Buffer copy;
  append(copy, frame.bytes());
  copy[4 + 10] |= std::byte{4};
  pair.client_sends(Slice::copy_of(copy));
  pair.run();
  REQUIRE(pair.at_client.size() == 1);
  CHECK(pair.server.handles.begin()->second.oplock == 0);
  CHECK(pair.near.leave_alone() == flows::Reason::smb_signed);
  CHECK(pair.far.leave_alone() == flows::Reason::smb_signed);
  CHECK(pair.far.counters().injected == 0);
}

TEST_CASE("SMB1: a directory is listed to its end with one round trip") {
  Pair pair;
  for (int i = 0; i < 95; ++i) pair.server.files["FILE" + std::to_string(1000 + i)] = "x";
  const bool by_name = GENERATE(false, true);
  std::vector<std::string> names;
  const auto take = [&](const Slice& frame, bool first) {
    const Message message = parsed(frame);
    REQUIRE(message.header.status == 0);
    const auto part = parse_transaction(message, message.first());
    const auto reply =
        first ? parse_find_first_reply(part->parameters) : parse_find_next_reply(part->parameters);
    for (Bytes at = part->data;;) {
      names.emplace_back(as_text(at.subspan(94, load_le<std::uint32_t>(at, 60))));
      const auto next = load_le<std::uint32_t>(at, 0);
      if (next == 0) break;
      at = at.subspan(next);
    }
    return reply->end_of_search;
  };
  Fields first;
  first.u16(0x16).u16(10).u16(6).u16(0x104).u32(0).text("*").u8(0);
  bool end = take(pair.ask(trans2(1, first.bytes, 10)), true);
  int round_trips = 0;
  for (std::uint16_t mid = 11; !end; ++mid) {
    Fields next;
    next.u16(0x55).u16(10).u16(0x104).u32(0).u16(by_name ? 6 : 14).text(by_name ? names.back() : "").u8(0);
    auto answer = pair.ask_here(trans2(2, next.bytes, mid));
    if (!answer) {
      ++round_trips;
      answer = pair.only_answer();
    }
    CHECK(mid_of(*answer) == mid);
    end = take(*answer, false);
    pair.run();
  }
  CHECK(names.size() == 95);
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(round_trips == 0);
  CHECK(pair.server.seen[0x34] == 1);  // the search asked to be closed at its end
}

TEST_CASE("SMB1: a client that changes its mind in a search loses nothing") {
  Pair pair;
  for (int i = 0; i < 60; ++i) pair.server.files["FILE" + std::to_string(1000 + i)] = "x";
  Fields first;
  first.u16(0x16).u16(10).u16(0).u16(0x104).u32(0).text("*").u8(0);
  pair.ask(trans2(1, first.bytes, 10));
  Fields next;  // fewer at once than were fetched
  next.u16(0x55).u16(5).u16(0x104).u32(0).u16(8).u8(0);
  const Slice answer = pair.ask(trans2(2, next.bytes, 11));
  const Message message = parsed(answer);
  const auto part = parse_transaction(message, message.first());
  CHECK(as_text(part->data.subspan(94, 8)) == "FILE1010");
}

TEST_CASE("SMB1: repeated questions about an open file are answered here until it is written") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  const Buffer question = Fields{}.u16(fid).u16(0x102).bytes;
  pair.ask(trans2(7, question, 11));
  const auto again = pair.ask_here(trans2(7, question, 12));
  REQUIRE(again);
  CHECK(mid_of(*again) == 12);
  pair.ask(write(fid, 0, as_bytes(some_bytes(200)), 13));
  const Slice changed = pair.ask(trans2(7, question, 14));
  const Message message = parsed(changed);
  CHECK(load_le<std::uint64_t>(parse_transaction(message, message.first())->data, 0) == 200);
}

TEST_CASE("SMB1: what a client asks about every file is asked with the open") {
  Pair pair;
  for (const char* name : {"A", "B", "C"}) pair.server.files[name] = some_bytes(100);
  const std::uint16_t first = fid_of(pair.ask(create("A", 10)));
  pair.ask(trans2(7, Fields{}.u16(first).u16(0x102).bytes, 11));
  pair.ask(read(first, 0, 1000, 11));
  const std::uint16_t second = fid_of(pair.ask(create("B", 12)));
  REQUIRE(pair.ask_here(trans2(7, Fields{}.u16(second).u16(0x102).bytes, 13)));
  CHECK(data_of(*pair.ask_here(read(second, 0, 1000, 14))).size() == 100);
  // Asked before the answer is here: it waits for that, and nothing goes to the server.
  pair.client_sends(create("C", 15));
  while (pair.move_up() || pair.server_answers()) {
  }
  while (pair.at_client.empty()) pair.move_down();
  const std::uint16_t third = fid_of(*pair.answer());
  const int before = pair.server.seen[0x32];
  pair.client_sends(trans2(7, Fields{}.u16(third).u16(0x102).bytes, 16));
  CHECK(pair.up.empty());
  CHECK(mid_of(pair.only_answer()) == 16);
  CHECK(pair.server.seen[0x32] == before);
}

TEST_CASE("SMB1: the server ends with promises outstanding: the client is reset, never closed cleanly") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server_waits = true;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  SECTION("before they are sent") {
    pair.far.lan_ended(pair.now, modules::Ending::closed);
    pair.client_sends(flush(fid, 12));  // lets what was put out come
    pair.run();
    CHECK((pair.aborted || !pair.client_ended));
  }
  SECTION("while they are there") {
    while (pair.move_up()) {
    }
    pair.far.lan_ended(pair.now, modules::Ending::closed);
    pair.client_sends(flush(fid, 12));
    CHECK(pair.aborted);
  }
}

TEST_CASE("SMB1: the client's end waits at the server until all promises are kept") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server_waits = true;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  pair.near.lan_ended(pair.now, modules::Ending::closed);
  pair.client_sends(flush(fid, 12));
  while (pair.move_up()) {
  }
  CHECK_FALSE(pair.server_ended);
  pair.server_waits = false;
  pair.run();
  CHECK(pair.server_ended);
  CHECK(pair.server.files["F"].size() == 100);
}

TEST_CASE("SMB1: with its features off nothing is answered early and nothing is added") {
  Pair pair;
  modules::Surroundings surroundings;
  surroundings.features.smb_read_ahead = surroundings.features.smb_write_behind =
      surroundings.features.smb_metadata = false;
  pair.near.on_surroundings(pair.now, surroundings);
  pair.far.on_surroundings(pair.now, surroundings);
  pair.server.files["F"] = some_bytes(100'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK_FALSE(pair.ask_here(read(fid, 0, 1000, 11)));
  CHECK(data_of(pair.only_answer()).size() == 1000);
  CHECK_FALSE(pair.ask_here(write(fid, 0, as_bytes("x"), 12)));
  pair.only_answer();
  CHECK_FALSE(pair.ask_here(close(fid, 13)));
  pair.only_answer();
  CHECK(pair.far.counters().injected == 0);
  CHECK(pair.server.seen[kRead] == 1);
  CHECK(pair.server.seen[kWrite] == 1);
}

// One client works on a few files, another changes them now and then through the server, as it may when the
// oplocks are broken. What the client reads must be what was there last.
TEST_CASE("SMB1: whatever crosses whatever, reads give what was written last and nothing is lost") {
  const unsigned seed = GENERATE(range(1u, 100u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  Pair pair;
  std::map<std::string, std::string> model;
  for (const char* name : {"A", "B", "C"})
    model[name] = pair.server.files[name] = some_bytes(random() % 200'000, seed);
  std::map<std::uint16_t, std::string> opened;
  std::uint16_t mid = 10;
  const auto settle = [&]() -> Slice {
    for (int i = 0; i < 10'000 && pair.at_client.empty(); ++i) pair.run_random(random, 5);
    // Breaks of oplocks that the client asked for come between: it answers them.
    REQUIRE_FALSE(pair.at_client.empty());
    return *pair.answer();
  };
  const auto ask = [&](const Slice& frame) {
    pair.client_sends(frame);
    for (;;) {
      const Slice answer = settle();
      const Message message = parsed(answer);
      if (message.header.is_reply()) return answer;
      const auto locking = parse_locking_request(message.first());
      pair.client_sends(oplock_ack(locking->fid, locking->oplock_level));
    }
  };
  for (int step = 0; step < 120; ++step) {
    mid = static_cast<std::uint16_t>(mid % 100 + 10);
    const std::string name(1, static_cast<char>('A' + random() % 3));
    if (opened.size() < 3 && random() % 4 == 0) {
      const std::uint32_t flags = std::array{0u, 0u, 2u, 6u}[random() % 4];
      const Slice answer = ask(create(name, mid, {.flags = flags}));
      REQUIRE(status_of(answer) == 0);
      opened[fid_of(answer)] = name;
    } else if (!opened.empty()) {
      auto at = opened.begin();
      std::advance(at, random() % opened.size());
      const auto [fid, file] = *at;
      std::string& content = model[file];
      const std::size_t offset = content.empty() ? 0 : random() % (content.size() + 100);
      const std::size_t length = 1 + random() % 40'000;
      switch (random() % 12) {
        case 0: {
          REQUIRE(status_of(ask(close(fid, mid))) == 0);
          opened.erase(at);
          break;
        }
        case 1:
        case 2:
        case 3: {
          const std::string data = some_bytes(length, static_cast<unsigned>(random()));
          REQUIRE(status_of(ask(write(fid, offset, as_bytes(data), mid))) == 0);
          if (content.size() < offset + length) content.resize(offset + length);
          content.replace(offset, length, data);
          break;
        }
        case 4: {
          pair.server.break_oplock(file, random() % 2);
          for (int i = 0; i < 10'000 && !pair.server.is_broken(file); ++i) {
            pair.run_random(random, 5);
            while (auto said = pair.answer()) {
              const Message message = parsed(*said);
              REQUIRE_FALSE(message.header.is_reply());
              const auto locking = parse_locking_request(message.first());
              pair.client_sends(oplock_ack(locking->fid, locking->oplock_level));
            }
          }
          REQUIRE(pair.server.is_broken(file));
          REQUIRE(pair.server.files[file] == content);  // what was acknowledged is there
          bool level2 = false;
          for (const auto& [other, handle] : pair.server.handles) level2 = level2 || handle.oplock == 3;
          if (!level2 && !content.empty())
            content[0] = pair.server.files[file][0] = static_cast<char>(random());
          break;
        }
        case 5: {
          REQUIRE(status_of(ask(flush(fid, mid))) == 0);
          REQUIRE((pair.server.files[file] == content));
          break;
        }
        case 6:
        case 7: {
          const Slice answer = ask(trans2(7, Fields{}.u16(fid).u16(0x102).bytes, mid));
          const Message message = parsed(answer);
          const auto part = parse_transaction(message, message.first());
          REQUIRE(load_le<std::uint64_t>(part->data, 0) == content.size());
          break;
        }
        default: {
          const std::string expected =
              offset < content.size() ? content.substr(offset, length) : std::string();
          const std::string got = data_of(ask(read(fid, offset, static_cast<std::uint32_t>(length), mid)));
          REQUIRE((got == expected));
        }
      }
    }
    pair.run_random(random, static_cast<int>(random() % 8));
    REQUIRE_FALSE(pair.aborted);
  }
  for (const auto& [fid, name] : opened) REQUIRE(status_of(ask(close(fid, mid))) == 0);
  pair.run();
  CHECK(pair.at_client.empty());
  CHECK(pair.server.handles.empty());
  for (const auto& [name, content] : model) CHECK((pair.server.files[name] == content));
  CHECK(pair.near.audit().adds_up());
  CHECK(pair.near.quiet());
  CHECK(pair.far.quiet());
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
