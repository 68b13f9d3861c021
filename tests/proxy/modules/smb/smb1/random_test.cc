// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

// One client works on a few files, another changes them now and then through the server, as it may when the
// oplocks are broken. What the client reads must be what was there last.
TEST_CASE("SMB1: with any crossing of messages reads return the last write and nothing is lost") {
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
  const auto settle_bare = [&] {
    for (;;) {
      const Slice frame = settle();
      const auto message = parse_message(frame.bytes().subspan(4));
      if (!message) return frame;
      const auto locking = parse_locking_request(message->first());
      REQUIRE_FALSE(message->header.is_reply());
      pair.client_sends(oplock_ack(locking->fid, locking->oplock_level));
    }
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
      switch (random() % 16) {
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
        case 8: {
          const Slice answer = ask(query_path("\\" + file, 0x102, mid));
          const Message message = parsed(answer);
          const auto part = parse_transaction(message, message.first());
          REQUIRE(load_le<std::uint64_t>(part->data, 0) == content.size());
          break;
        }
        case 9: {  // a look at it, as programs take at neighbours
          const std::uint16_t look = fid_of(ask(create(file, mid, {.access = 0x100080})));
          const Slice answer = ask(trans2(7, Fields{}.u16(look).u16(0x102).bytes, mid));
          const Message message = parsed(answer);
          const auto part = parse_transaction(message, message.first());
          REQUIRE(load_le<std::uint64_t>(part->data, 0) == content.size());
          REQUIRE(status_of(ask(close(look, mid))) == 0);
          break;
        }
        case 10: {
          const auto size = static_cast<std::uint16_t>(std::min<std::size_t>(length, 30'000));
          pair.client_sends(read_raw(fid, static_cast<std::uint32_t>(offset), size, mid));
          const std::string expected = offset < content.size() ? content.substr(offset, size) : std::string();
          REQUIRE((as_text(settle_bare().bytes().subspan(4)) == expected));
          break;
        }
        case 11: {
          const auto size = static_cast<std::uint16_t>(std::min<std::size_t>(length, 30'000));
          const std::string data = some_bytes(size, static_cast<unsigned>(random()));
          const std::uint16_t through = random() % 2;
          pair.client_sends(write_raw(fid, static_cast<std::uint32_t>(offset), size, through, mid));
          while (parsed(settle()).header.command != Command::write_raw) {
          }
          pair.client_sends(bare(data));
          if (through) REQUIRE(status_of(settle()) == 0);
          // Without that nothing shows when they have arrived.
          for (int i = 0; i < 10'000 && pair.server.expects_data(); ++i) pair.run_random(random, 5);
          if (content.size() < offset + size) content.resize(offset + size);
          content.replace(offset, size, data);
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

// As a kernel with a cache does it: reads ahead and writes back by pages, many at a time, and a MID is taken
// again as soon as it was answered. No two that are under way touch the same page, unless both read.
TEST_CASE("SMB1: of many concurrent requests each is answered once, with the current content") {
  const unsigned seed = GENERATE(range(1u, 16u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  Pair pair;
  constexpr std::size_t kPage = 4096, kPages = 100;
  std::string model = some_bytes(kPage * kPages, seed);
  pair.server.files["A"] = model;
  const std::uint32_t flags = std::array{0u, 2u, 6u}[random() % 3];
  const std::uint16_t fid = fid_of(pair.ask(create("A", 10, {.flags = flags})));
  struct Asked {
    std::uint8_t command = 0;
    std::size_t page = 0, pages = 0;
  };
  std::map<std::uint16_t, Asked> under_way;
  const auto free_of = [&](std::size_t page, std::size_t pages, bool from_reads) {
    for (const auto& [mid, asked] : under_way) {
      const bool meets = page < asked.page + asked.pages && asked.page < page + pages;
      if (meets && (from_reads || asked.command == 0x2F)) return false;
    }
    return true;
  };
  const auto look = [&] {
    while (auto said = pair.answer()) {
      const Message message = parsed(*said);
      REQUIRE(message.header.is_reply());
      const auto found = under_way.find(message.header.mid);
      REQUIRE(found != under_way.end());
      const Asked asked = found->second;
      under_way.erase(found);
      REQUIRE(static_cast<std::uint8_t>(message.header.command) == asked.command);
      REQUIRE(message.header.status == 0);
      if (asked.command == 0x2E)
        REQUIRE((data_of(*said) == model.substr(asked.page * kPage, asked.pages * kPage)));
    }
  };
  std::size_t next = 0;
  for (int step = 0; step < 400; ++step) {
    std::uint16_t mid = 1;
    while (under_way.contains(mid)) ++mid;
    const bool onward = random() % 3 != 0;
    const std::size_t page = onward ? next % kPages : random() % kPages;
    const std::size_t pages = std::min<std::size_t>(1 + random() % 15, kPages - page);
    if (onward) next = page + pages;
    if (under_way.size() < 40) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
          if (!free_of(page, pages, true)) break;
          model.replace(page * kPage, pages * kPage,
                        some_bytes(pages * kPage, static_cast<unsigned>(random())));
          under_way[mid] = {0x2F, page, pages};
          pair.client_sends(write(
              fid, page * kPage, as_bytes(std::string_view(model).substr(page * kPage, pages * kPage)), mid));
          break;
        case 3:
          under_way[mid] = {0x05, 0, 0};
          pair.client_sends(flush(fid, mid));
          break;
        default:
          if (!free_of(page, pages, false)) break;
          under_way[mid] = {0x2E, page, pages};
          pair.client_sends(read(fid, page * kPage, static_cast<std::uint32_t>(pages * kPage), mid));
      }
    }
    pair.run_random(random, static_cast<int>(random() % 12));
    // A server may be done with a later one first.
    if (pair.server.out.size() > 1 && random() % 4 == 0) std::swap(pair.server.out[0], pair.server.out[1]);
    look();
    REQUIRE_FALSE(pair.aborted);
  }
  pair.run();
  look();
  CHECK(under_way.empty());
  CHECK(status_of(pair.ask(close(fid, 1))) == 0);
  CHECK((pair.server.files["A"] == model));
  CHECK(pair.near.audit().adds_up());
  CHECK(pair.near.quiet());
  CHECK(pair.far.quiet());
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
