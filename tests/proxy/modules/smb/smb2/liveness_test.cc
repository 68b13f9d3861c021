// SPDX-License-Identifier: Apache-2.0
// That every request is answered in the end, whatever crosses what: a client with many requests at a time on
// a fast line, where much is fetched ahead and piles up on its way.
#include <cstdio>
#include <cstdlib>

#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

using namespace std::chrono_literals;

std::string some_bytes(std::size_t size, std::mt19937& random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

struct LiveClient : World {
  struct Sent {
    Command command = Command::echo;
    std::string name = {};
    FileId file = {};
    std::optional<std::string> data = {};    // what a READ must return
    std::optional<std::uint64_t> size = {};  // what a query must
    bool changes = false;
  };

  std::mt19937 random;
  std::map<std::string, std::string> model;
  std::map<FileId, std::string> opened;
  std::set<FileId> closing;
  std::map<MessageId, Sent> under_way;
  std::map<FileId, std::uint64_t> positions;
  std::optional<FileId> folder;
  bool lists = false;
  std::size_t next_in_row = 0, looked_at = 0;
  static constexpr std::size_t kRow = 60;
  std::optional<TimePoint> silent_since;

  explicit LiveClient(std::uint32_t seed) : World(seed), random(seed) {
    for (std::size_t i = 0; i < kRow; ++i) {
      model[in_row(i)] = some_bytes(random() % 3000, random);
      server.listing.push_back("file" + std::to_string(1000 + i));
    }
    for (const char* name : {"a", "b", "dir\\c"}) model[name] = some_bytes(random() % 900'000, random);
    server.files = model;
    server.most_free_ids = std::array{20u, 40u, 100u, 512u}[random() % 4];
    server.confirms_watches = !chance(4);
    if (chance(3)) server.dialect = 0x0302;
    REQUIRE(connect());
    line(chance(4) ? 1'000'000 : 80'000'000);
    switch_relaxed(chance(2));
    switch_write_behind_cached(chance(2));
    in_contact();
  }
  bool chance(unsigned n) { return random() % n == 0; }
  static std::string in_row(std::size_t i) { return "dir\\file" + std::to_string(1000 + i); }
  void in_contact() {
    silent_since.reset();
    tell({.since = TimePoint{} + 1h, .confirmed = now, .heard = now});
  }

  void add(MessageId id, Sent sent) { under_way.emplace(id, std::move(sent)); }
  bool uses(const std::string& name, bool changes_only) const {
    for (const auto& [id, sent] : under_way)
      if (sent.name == name && (sent.changes || !changes_only)) return true;
    return false;
  }

  // Everything that has come to the client.
  void look() {
    for (auto each = under_way.begin(); each != under_way.end();) {
      const auto answer = answers.find(each->first);
      if (answer == answers.end()) {
        ++each;
        continue;
      }
      const Sent sent = std::move(each->second);
      each = under_way.erase(each);
      take(sent, answer->second);
    }
    for (; looked_at < unsolicited.size(); ++looked_at) {
      const auto parsed = parse_break(unsolicited[looked_at].first().bytes);
      const auto& broken = std::get<OplockBreak>(*parsed);
      add(acknowledge(broken.file, broken.level), {});
    }
  }
  void take(const Sent& sent, const Message& message) {
    const Header& header = message.header();
    INFO(describe(message.frame));
    REQUIRE(header.command == (sent.command == Command::echo ? Command::oplock_break : sent.command));
    const bool good = header.status == Status::success;
    if (sent.command == Command::create && good) {
      const FileId file = parse_create_response(message.first().bytes)->file;
      if (sent.name == "dir") {
        folder = file;
      } else {
        opened[file] = sent.name;
      }
    }
    if (sent.command == Command::close) {
      REQUIRE(good);
      opened.erase(sent.file), closing.erase(sent.file), positions.erase(sent.file);
    }
    if (sent.data) {
      const bool at_end = header.status == Status::end_of_file && sent.data->empty();
      const bool closed = header.status == Status::file_closed && !opened.contains(sent.file);
      REQUIRE((good || at_end || closed || closing.contains(sent.file)));
      if (good) REQUIRE((as_text(parse_read_response(message.first().bytes)->data) == *sent.data));
    }
    if (sent.size && good)
      REQUIRE(load_le<std::uint64_t>(parse_buffer_response(message.first().bytes)->buffer, 8) == *sent.size);
  }

  void open(const std::string& name, bool plainly) {
    if (uses(name, true)) return;
    const bool looks = !plainly && chance(6),
               empties = !plainly && !looks && chance(10) && !uses(name, false);
    const std::uint32_t access = looks     ? access::read_attributes | access::synchronize
                                 : plainly ? access::read_data | access::synchronize
                                           : 0x12019F;
    add(send_create(name, empties ? Disposition::overwrite_if : Disposition::open,
                    looks || plainly || chance(2) ? kNone : kBatch, 0, access),
        {.command = Command::create, .name = name, .changes = empties});
    if (empties) model[name].clear();
  }
  void read_some(const FileId& file, const std::string& name) {
    if (uses(name, true)) return;
    const std::string& content = model[name];
    std::uint64_t& position = positions[file];
    std::uint32_t length = static_cast<std::uint32_t>(chance(3) ? 1 + random() % 100'000 : 65'536);
    if (chance(10)) length = 400'000;
    if (charge_for(length) + 2 > credits) length = 60'000;
    const auto kind = random() % 8;
    if (kind == 0) position = content.empty() ? 0 : random() % (content.size() + 50'000);
    if (kind == 1) position += 65'536;
    if (kind == 2 && position > content.size()) position = 0;
    const std::string expected = position < content.size() ? content.substr(position, length) : std::string();
    const MessageId id = send_read(file, position, length);
    add(id, {.command = Command::read, .name = name, .file = file, .data = expected});
    position += length;
    if (chance(40)) send_cancel(id);
  }
  void write_some(const FileId& file, const std::string& name) {
    if (uses(name, false)) return;
    std::string& content = model[name];
    if (chance(5)) {  // another end
      content.resize(random() % (content.size() + 1 + (chance(2) ? 100'000 : 0)));
      add(send_end_of_file(file, content.size()),
          {.command = Command::set_info, .name = name, .file = file, .changes = true});
      return;
    }
    const std::size_t at = chance(2) ? content.size() : random() % (content.size() + 1);
    const std::string data = some_bytes(1 + random() % 60'000, random);
    if (content.size() < at + data.size()) content.resize(at + data.size());
    content.replace(at, data.size(), data);
    add(send_write(file, at, data), {.command = Command::write, .name = name, .file = file, .changes = true});
  }
  void list() {
    bool waits = false;
    for (const auto& [id, sent] : under_way)
      waits = waits || sent.command == Command::query_directory || sent.name == "dir";
    if (!folder) {
      if (!waits)
        add(send_create("dir", Disposition::open, kNone, create_options::directory_file,
                        access::read_data | access::read_attributes),
            {.command = Command::create, .name = "dir"});
      return;
    }
    if (chance(waits ? 20 : 12)) {
      add(send_close(*folder), {.command = Command::close, .name = "dir", .file = *folder});
      folder.reset();
    } else if (!waits || chance(4)) {
      const auto flags = static_cast<std::uint8_t>(chance(8) ? query_directory_flags::restart_scans : 0);
      add(send_query_directory(*folder, flags, static_cast<std::uint32_t>(200 + random() % 3000)),
          {.command = Command::query_directory});
    }
  }
  void rarely() {
    switch (random() % 5) {
      case 0:
        return switch_relaxed(chance(2));
      case 1:
        return switch_metadata(chance(2));
      case 2:  // a silence, after which what was learnt is not used
        silent_since = now;
        link_cut = true;
        return;
      case 3:
        (void)server.take_oplock(kNone);
        return;
      default:
        pass(std::chrono::milliseconds(random() % 3000));
        if (!silent_since) in_contact();
    }
  }
  void act() {
    if (silent_since) {
      now += 100ms;
      tell({.since = TimePoint{} + 1h, .confirmed = *silent_since, .heard = *silent_since});
      if (chance(20)) link_cut = false, in_contact();
    } else if (now.time_since_epoch().count() % 5 == 0) {
      in_contact();
    }
    if (chance(150)) return rarely();
    if (credits < 3) return;
    if (chance(6)) return list();
    if (opened.size() < 5 && chance(3)) {
      if (chance(3)) return open(std::array{"a", "b", "dir\\c"}[random() % 3], false);
      if (chance(20)) next_in_row = random() % kRow;
      next_in_row = (next_in_row + 1) % kRow;
      return open(in_row(next_in_row), true);
    }
    std::vector<FileId> open_now;
    for (const auto& [file, name] : opened)
      if (!closing.contains(file)) open_now.push_back(file);
    if (open_now.empty()) return;
    const FileId file = open_now[random() % open_now.size()];
    const std::string name = opened[file];
    const auto what = random() % 24;
    if (what < 3 && !uses(name, true)) {
      closing.insert(file);
      add(send_close(file), {.command = Command::close, .name = name, .file = file});
    } else if (what < 7 && !uses(name, true)) {
      add(send_query_info(file, file_info::standard),
          {.command = Command::query_info, .name = name, .file = file, .size = model[name].size()});
    } else if (what < 10 && name.find("file") == name.npos) {
      write_some(file, name);
    } else if (what == 10) {
      add(send_flush(file), {.command = Command::flush, .name = name, .file = file});
    } else {
      read_some(file, name);
    }
  }
  void end() {
    link_cut = false;
    order = Order::any;
    for (int i = 0; i < 40; ++i) {
      in_contact();
      settle();
      look();
      pass(500ms);
    }
    settle();
    look();
  }
};

}  // namespace

// The seeds of a longer run: LONGHAUL_SEEDS=from:to.
TEST_CASE("SMB2: every request is answered in the end, whatever piles up on its way") {
  unsigned from = 1, to = 9;
  if (const char* seeds = std::getenv("LONGHAUL_SEEDS")) std::sscanf(seeds, "%u:%u", &from, &to);
  for (unsigned seed = from; seed < to; ++seed) {
    INFO("seed " << seed);
    LiveClient client(seed);
    for (int step = 0; step < 500; ++step) {
      if (client.chance(12)) client.order = World::Order(client.random() % 3);
      client.act();
      for (auto steps = client.chance(3) ? 0 : client.random() % 40; steps > 0; --steps) client.step();
      client.look();
      REQUIRE_FALSE(client.aborted);
    }
    client.end();
    for (const auto& [id, sent] : client.under_way)
      UNSCOPED_INFO("id " << id.number() << ": " << name_of(sent.command) << " " << sent.name);
    REQUIRE(client.under_way.empty());
    REQUIRE_FALSE(client.aborted);
    for (const auto& [name, content] : client.model) REQUIRE((client.server.files[name] == content));
    REQUIRE(client.near().quiet());
    REQUIRE(client.far().quiet());
    REQUIRE(promises_add_up(client));
  }
}

}  // namespace longhaul::smb::smb2::model
