// SPDX-License-Identifier: Apache-2.0
// That every request is answered in the end, whatever crosses what: a client with many requests at a time on
// a fast line, where much is fetched ahead and piles up on its way.
#include <array>
#include <set>

#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

constexpr std::uint16_t kUnanswered = 0x7000;  // MIDs of requests that are never answered

struct LiveClient {
  struct Sent {
    std::uint8_t command = 0;
    std::string name = {};
    std::uint16_t fid = 0;
    std::optional<std::string> data = {};    // what a READ must return
    std::optional<std::uint64_t> size = {};  // what a query must
    bool changes = false, lists = false;
  };

  std::mt19937 random;
  Pair pair;
  std::map<std::string, std::string> model;
  std::map<std::uint16_t, std::string> opened;
  std::set<std::uint16_t> closing, locked;
  std::map<std::uint16_t, Sent> under_way;
  std::map<std::uint16_t, std::uint64_t> positions;
  std::set<std::string> wanted;  // by another client
  bool searches = false;
  std::uint16_t last_mid = 10, others = 0;
  const std::uint16_t max_mpx;
  Surroundings surroundings;

  explicit LiveClient(unsigned seed)
      : random(seed),
        pair(std::make_shared<LostWrites>(), 1, std::make_shared<LostWrites>(),
             std::array<std::uint16_t, 4>{1, 4, 12, 50}[seed % 4]),
        max_mpx(pair.server.max_mpx) {
    surroundings.line_bytes_per_second = chance(4) ? 1'000'000 : 80'000'000;
    surroundings.round_trip = std::chrono::milliseconds(100);
    surroundings.features.write_behind_cached = chance(2);
    surroundings.features.metadata_relaxed = !chance(4);
    tell();
    for (const char* name : {"A", "B", "C"})
      model[name] = pair.server.files[name] = some_bytes(random() % (chance(2) ? 100'000 : 900'000), seed);
    for (int i = 0; i < 60; ++i) pair.server.files["LISTED" + std::to_string(100 + i)] = "x";
  }
  bool chance(unsigned n) { return random() % n == 0; }
  void tell() {
    pair.near.on_surroundings(pair.now, surroundings);
    pair.far.on_surroundings(pair.now, surroundings);
    pair.pass({});
  }

  std::uint16_t send(const Slice& frame, Sent sent) {
    under_way.emplace(last_mid, std::move(sent));
    pair.client_sends(frame);
    return last_mid;
  }
  std::uint16_t mid() {
    do last_mid = static_cast<std::uint16_t>((last_mid - 9) % 100 + 10);
    while (under_way.contains(last_mid));
    return last_mid;
  }
  bool has_room() const { return under_way.size() + others < max_mpx; }
  bool uses(const std::string& name, bool changes_only) const {
    for (const auto& [mid, sent] : under_way)
      if (sent.name == name && (sent.changes || !changes_only)) return true;
    return false;
  }

  // Everything that has come to the client.
  void look() {
    while (const auto frame = pair.answer()) {
      const Message message = parsed(*frame);
      if (!message.header.is_reply()) {
        const auto locking = parse_locking_request(message.first());
        pair.client_sends(oplock_ack(locking->fid, locking->oplock_level));
        continue;
      }
      if (message.header.mid >= kUnanswered) continue;
      const auto found = under_way.find(message.header.mid);
      REQUIRE(found != under_way.end());
      const auto part = parse_transaction(message, message.first());
      const Sent sent = std::move(found->second);
      REQUIRE(static_cast<std::uint8_t>(message.header.command) == sent.command);
      under_way.erase(found);
      const bool good = message.header.status == 0;
      if (sent.command == 0xA2 && good) opened[fid_of(*frame)] = sent.name;
      if (sent.command == 0x04) opened.erase(sent.fid), closing.erase(sent.fid), positions.erase(sent.fid);
      if (sent.data && good) REQUIRE((data_of(*frame) == *sent.data));
      // This server knows no error for a query of a closed file.
      const bool is_open = opened.contains(sent.fid) && !closing.contains(sent.fid);
      if (sent.size && good && is_open) REQUIRE(load_le<std::uint64_t>(part->data, 0) == *sent.size);
      if (sent.data || sent.size) REQUIRE((good || !is_open));
      if (sent.lists && searches) searches = good && !ends(*part, message);
    }
  }
  static bool ends(const Transaction& part, const Message&) {
    const auto first = parse_find_first_reply(part.parameters);
    const auto next = parse_find_next_reply(part.parameters);
    return part.parameters.size() >= 10 ? first->end_of_search : next->end_of_search;
  }

  void open(const std::string& name) {
    const bool looks = chance(5);
    const bool empties = !looks && chance(10) && !uses(name, false);
    if (uses(name, true)) return;
    const std::uint32_t flags = looks ? 0 : std::array{0u, 0u, 2u, 6u}[random() % 4];
    mid();
    send(create(name, last_mid,
                {.flags = flags, .access = looks ? 0x100080u : 3u, .disposition = empties ? 5u : 1u}),
         {.command = 0xA2, .name = name, .changes = empties});
    if (empties) model[name].clear();
  }
  void read_some(std::uint16_t fid, const std::string& name) {
    if (uses(name, true)) return;
    const std::string& content = model[name];
    std::uint64_t& position = positions[fid];
    const auto length = static_cast<std::uint32_t>(chance(3) ? 1 + random() % 60'000 : 30'000);
    const auto kind = random() % 8;
    if (kind == 0) position = content.empty() ? 0 : random() % (content.size() + 50'000);
    if (kind == 1) position += 60'000;
    if (kind == 2 && position > content.size()) position = 0;
    const std::string expected = position < content.size() ? content.substr(position, length) : std::string();
    mid();
    send(testing::read(fid, position, length, last_mid),
         {.command = 0x2E, .name = name, .fid = fid, .data = expected});
    position += length;
  }
  void write_some(std::uint16_t fid, const std::string& name) {
    if (uses(name, false)) return;
    std::string& content = model[name];
    if (chance(5)) {  // another end
      content.resize(random() % (content.size() + 1 + (chance(2) ? 100'000 : 0)));
      mid();
      send(set_end_of_file(fid, content.size(), last_mid),
           {.command = 0x32, .name = name, .fid = fid, .changes = true});
      return;
    }
    const std::size_t at = chance(2) ? content.size() : random() % (content.size() + 1);
    const std::string data = some_bytes(1 + random() % 50'000, static_cast<unsigned>(random()));
    if (content.size() < at + data.size()) content.resize(at + data.size());
    content.replace(at, data.size(), data);
    mid();
    send(write(fid, at, as_bytes(data), last_mid),
         {.command = 0x2F, .name = name, .fid = fid, .changes = true});
  }
  void query(std::uint16_t fid, const std::string& name) {
    if (uses(name, true)) return;
    const std::uint64_t size = model[name].size();
    mid();
    send(chance(2) ? trans2(7, Fields{}.u16(fid).u16(0x102).bytes, last_mid)
                   : query_path("\\" + name, 0x102, last_mid),
         {.command = 0x32, .name = name, .fid = fid, .size = size});
  }
  void list() {
    mid();
    bool waits = false;
    for (const auto& [mid, sent] : under_way) waits = waits || sent.lists;
    if (waits && (!searches || !chance(4))) return;
    if (searches && chance(waits ? 1 : 6)) {
      searches = false;
      send(make_frame({.command = 0x34, .tid = kTid, .uid = kUid, .mid = last_mid}, Fields{}.u16(0x55).bytes,
                      {}),
           {.command = 0x34});
    } else if (searches) {
      send(trans2(2, Fields{}.u16(0x55).u16(10).u16(0x104).u32(0).u16(12).text("").u8(0).bytes, last_mid),
           {.command = 0x32, .lists = true});
    } else {
      searches = true;
      send(
          trans2(1, Fields{}.u16(0x16).u16(10).u16(4).u16(0x104).u32(0).text("\\D\\*").u8(0).bytes, last_mid),
          {.command = 0x32, .lists = true});
    }
  }
  void close_one(std::uint16_t fid, const std::string& name) {
    if (uses(name, true)) return;
    closing.insert(fid);
    mid();
    send(close(fid, last_mid), {.command = 0x04, .name = name, .fid = fid});
  }
  void other_client() {
    for (const std::string& name : std::set(wanted)) {
      // Level II is broken without an acknowledgement: the client knows when that has come.
      const bool moves = !pair.server.out.empty() || !pair.down.empty() || !pair.up.empty();
      if (moves || !pair.server.is_broken(name) || uses(name, false)) continue;
      bool shared = false;
      for (const auto& [fid, handle] : pair.server.handles) shared = shared || handle.oplock == 3;
      REQUIRE((pair.server.files[name] == model[name]));  // what was acknowledged is there
      if (!shared && !model[name].empty())
        model[name][0] = pair.server.files[name][0] = static_cast<char>(random());
      wanted.erase(name);
    }
    if (!chance(60)) return;
    const std::string name(1, static_cast<char>('A' + random() % 3));
    pair.server.break_oplock(name, random() % 2);
    wanted.insert(name);
  }
  void rarely() {
    switch (random() % 4) {
      case 0:
        surroundings.features.metadata_relaxed = !surroundings.features.metadata_relaxed;
        return tell();
      case 1:
        surroundings.features.read_ahead = !surroundings.features.read_ahead;
        return tell();
      case 2:
        surroundings.features.metadata = !surroundings.features.metadata;
        return tell();
      default:  // a request that is answered when something happens in a folder
        if (under_way.size() + others + 1 >= max_mpx) return;
        pair.client_sends(notify_change_request(
            {0x1234, kUid, kTid, static_cast<std::uint16_t>(kUnanswered + others), 0x4001},
            static_cast<std::uint16_t>(0x9000 + others), 1, 64));
        ++others;
    }
  }
  void act() {
    other_client();
    if (!has_room()) return;
    if (chance(150)) return rarely();
    if (opened.size() < 4 && chance(6)) return open(std::string(1, static_cast<char>('A' + random() % 3)));
    if (chance(8)) return list();
    std::vector<std::uint16_t> open_now;
    for (const auto& [fid, name] : opened)
      if (!closing.contains(fid)) open_now.push_back(fid);
    if (open_now.empty()) return;
    const std::uint16_t fid = open_now[random() % open_now.size()];
    const std::string name = opened[fid];
    const bool looks = pair.server.handles.contains(fid) && pair.server.handles.at(fid).looks;
    const auto what = random() % 24;
    if (what < 2 || (looks && what < 20)) return looks && what > 8 ? query(fid, name) : close_one(fid, name);
    if (looks || what < 5) return query(fid, name);
    if (what < 9) return write_some(fid, name);
    if (what == 9 && chance(6)) {
      mid();
      send(make_frame({.command = 0x24, .tid = kTid, .uid = kUid, .mid = last_mid},
                      Fields{}.andx().u16(fid).u8(0x10).u8(0).u32(0).u16(0).u16(1).bytes, Buffer(20)),
           {.command = 0x24, .name = name, .fid = fid});
      return;
    }
    read_some(fid, name);
  }
  // Some messages come to where they go.
  void move(unsigned how) {
    for (auto steps = random() % 40; steps > 0; --steps) {
      if (pair.server.out.size() > 1 && chance(6)) swap_answers();
      if (how == 0) {
        pair.run_random(random, 1);
      } else if (how == 1) {  // what comes down piles up
        chance(2) ? pair.move_up() : pair.server_answers();
      } else if (how == 2) {
        chance(20) ? pair.move_up() : pair.move_down();
      }  // else nothing moves
    }
  }
  // A server may have done a later READ first.
  void swap_answers() {
    for (const std::size_t i : {0u, 1u})
      if (pair.server.out[i].bytes()[8] != std::byte{0x2E}) return;
    std::swap(pair.server.out[0], pair.server.out[1]);
  }
};

// The seeds of a longer run: LONGHAUL_SEEDS=from:to.
TEST_CASE("SMB1: every request is answered in the end, whatever piles up on its way") {
  unsigned from = 1, to = 21;
  if (const char* seeds = std::getenv("LONGHAUL_SEEDS")) std::sscanf(seeds, "%u:%u", &from, &to);
  for (unsigned seed = from; seed < to; ++seed) {
    CAPTURE(seed);
    LiveClient client(seed);
    unsigned how = 0;
    for (int step = 0; step < 400; ++step) {
      if (client.chance(12)) how = static_cast<unsigned>(client.random() % 4);
      client.act();
      client.move(how);
      client.look();
      if (client.chance(30)) client.pair.pass(std::chrono::milliseconds(client.random() % 400));
      REQUIRE_FALSE(client.pair.aborted);
    }
    for (int i = 0; i < 40; ++i) {
      client.pair.run();
      client.look();
      client.other_client();
      client.pair.pass(std::chrono::milliseconds(500));
    }
    client.pair.run();
    client.look();
    for (const auto& [mid, sent] : client.under_way)
      UNSCOPED_INFO("MID " << mid << ": command " << unsigned{sent.command} << ", " << sent.name);
    REQUIRE(client.under_way.empty());
    REQUIRE_FALSE(client.pair.aborted);
    for (const auto& [name, content] : client.model) REQUIRE((client.pair.server.files[name] == content));
    REQUIRE(client.pair.near.quiet());
    REQUIRE(client.pair.far.quiet());
  }
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
