// SPDX-License-Identifier: Apache-2.0
// Responses on disk, for clients of HTTP/1 and HTTP/2: after a restart they answer at once if that was clean, otherwise after the
// server has confirmed them; and nothing waits for a disk that does not answer.
#include <catch2/catch.hpp>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/on_disk.h"
#include "proxy/modules/http/stored_record.h"
#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http {
namespace {

using kit::Twins;

// A disk whose reads return when the test says so.
class FakeDisk final : public modules::Objects {
 public:
  struct Kept {
    std::string name;
    Buffer tag;
    Buffer bytes;
    bool is_sure = true;
  };
  std::map<Id, Kept> kept;
  std::vector<std::pair<Id, Done>> reading;
  bool is_read_at_once = false;
  int puts = 0;

  std::optional<Found> find(std::string_view name, const Fits& fits) const override {
    for (auto at = kept.rbegin(); at != kept.rend(); ++at)
      if (at->second.name == name && fits(at->second.tag, at->second.is_sure)) return Found{at->first, at->second.is_sure};
    return std::nullopt;
  }
  bool read(Id id, Done done) override {
    reading.emplace_back(id, std::move(done));
    return true;
  }
  void put(std::string_view name, Buffer tag, std::vector<Slice> parts) override {
    ++puts;
    erase(name, tag);
    Kept& made = kept[++last_];
    made.name = name;
    made.tag = std::move(tag);
    for (const Slice& part : parts) append(made.bytes, part.bytes());
  }
  void erase(std::string_view name) override {
    std::erase_if(kept, [&](const auto& each) { return each.second.name == name; });
  }
  void erase(std::string_view name, Bytes tag) override {
    std::erase_if(kept, [&](const auto& each) { return each.second.name == name && std::ranges::equal(each.second.tag, tag); });
  }
  std::uint64_t clear() override { return kept.clear(), 7; }
  std::uint64_t memory_bytes() const override { return 0; }

  void deliver() {
    for (auto& [id, done] : std::exchange(reading, {})) {
      const auto found = kept.find(id);
      done(found == kept.end() ? std::nullopt : std::optional(Slice::copy_of(found->second.bytes)));
    }
  }
  void set_sure(bool sure) {
    for (auto& [id, each] : kept) each.is_sure = sure;
  }

 private:
  Id last_ = 0;
};

// The daemon's clocks. The flows' own one follows.
struct Daemon {
  FakeDisk& disk;
  std::int64_t wall = 1'700'000'000;
  link::TimePoint now{std::chrono::hours(1)};
  std::shared_ptr<modules::Instance> instance = kDescriptor.make({.ahead_bytes = 1 << 20,
                                                                  .daemon_number = 1,
                                                                  .wall_seconds = [this] { return wall; },
                                                                  .now = [this] { return now; },
                                                                  .objects = &disk});
  explicit Daemon(FakeDisk& of) : disk(of) {}
};

class Visit {
 public:
  explicit Visit(Daemon& daemon) : daemon_(daemon), twins(kDescriptor, 1, daemon.instance) {
    twins.now = daemon.now;
    twins.on_server_bytes = [this] { answer(); };
  }
  void sends(const std::string& path, const std::string& fields = "", const std::string& method = "GET") {
    twins.client_sends(method + " " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
    twins.run();
  }
  void after(link::Duration time) {
    twins.now += time;
    daemon_.now = twins.now;
    twins.near.module.on_timeout(twins.now);
    twins.near.collect();
    twins.run();
  }
  std::string got() {
    twins.run();
    return std::exchange(twins.at_client, {});
  }
  // With a disk that answers.
  std::string get(const std::string& path, const std::string& fields = "") {
    sends(path, fields);
    if (daemon_.disk.reading.empty()) return got();
    CHECK(got().empty());
    daemon_.disk.deliver();
    after(std::chrono::milliseconds(2));
    return got();
  }
  int asked = 0, confirmed = 0;
  std::string tag = "\"1\"", control = "Cache-Control: max-age=3600\r\n";

 private:
  void answer() {
    for (std::size_t end; (end = twins.at_server.find("\r\n\r\n")) != std::string::npos;) {
      const std::string head = twins.at_server.substr(0, end + 4);
      twins.at_server.erase(0, end + 4);
      ++asked;
      const std::string fields = control + (tag.empty() ? "" : "ETag: " + tag + "\r\n");
      const bool same = !tag.empty() && head.find("If-None-Match: " + tag) != std::string::npos;
      confirmed += same;
      twins.server_sends(same ? "HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n"
                              : "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: 7\r\n\r\ncontent");
    }
  }
  Daemon& daemon_;

 public:
  Twins twins;
};

bool is_hit(const std::string& response) {
  return response.find("Cache-Status: longhaul;hit") != std::string::npos && response.ends_with("content");
}
bool is_confirmed(const std::string& response) {
  return response.find("longhaul;fwd=stale;fwd-status=304") != std::string::npos && response.ends_with("content");
}

// What a daemon has left: /a with these fields, an hour of life.
void store(FakeDisk& disk, const std::string& control = "Cache-Control: max-age=3600\r\n", const std::string& tag = "\"1\"") {
  Daemon first(disk);
  Visit visit(first);
  visit.control = control;
  visit.tag = tag;
  REQUIRE(visit.get("/a").ends_with("content"));
  REQUIRE(disk.kept.size() == 1);
}

}  // namespace

TEST_CASE("http on disk: after a clean restart a response answers at once, otherwise after the server has confirmed it") {
  FakeDisk disk;
  store(disk);
  const bool is_sure = GENERATE(true, false);
  disk.set_sure(is_sure);
  Daemon second(disk);
  Visit visit(second);
  const std::string response = visit.get("/a");
  CHECK((is_sure ? is_hit(response) : is_confirmed(response)));
  CHECK(visit.asked == (is_sure ? 0 : 1));
  CHECK(visit.twins.near.module.counters().cache_disk_reads == 1);
  // It is in memory, and on disk it is certain from now on.
  CHECK(is_hit(visit.get("/a")));
  CHECK(disk.kept.begin()->second.is_sure);
  CHECK(disk.puts == (is_sure ? 1 : 2));
}

TEST_CASE("http on disk: clocks that jump while the daemon is down make nothing fresh") {
  FakeDisk disk;
  store(disk);
  Daemon second(disk);
  bool is_fresh = false;
  SECTION("ten minutes later") { second.now += std::chrono::minutes(10), second.wall += 600, is_fresh = true; }
  SECTION("two hours later") { second.now += std::chrono::hours(2), second.wall += 7200; }
  SECTION("two hours later, and the clock was set back") { second.now += std::chrono::hours(2); }
  SECTION("the clock was set to before it was stored") { second.now += std::chrono::minutes(1), second.wall -= 60; }
  SECTION("the system was suspended for two hours") { second.wall += 7200; }
  SECTION("the system has started again") { second.now = link::TimePoint(std::chrono::minutes(1)), second.wall += 60; }
  Visit visit(second);
  const std::string response = visit.get("/a");
  CHECK(is_hit(response) == is_fresh);
  CHECK(is_confirmed(response) == !is_fresh);
}

TEST_CASE("http on disk: a response that no question can confirm is not used unless it is certain") {
  FakeDisk disk;
  store(disk, "Cache-Control: max-age=3600\r\n", "");
  disk.set_sure(false);
  Daemon second(disk);
  Visit visit(second);
  visit.sends("/a");
  CHECK(disk.reading.empty());
  CHECK(visit.got().find("Cache-Status") == std::string::npos);
  CHECK(visit.asked == 1);
}

TEST_CASE("http on disk: a disk that does not answer, or errs, delays a request for a moment") {
  FakeDisk disk;
  store(disk);
  Daemon second(disk);
  Visit visit(second);
  visit.sends("/a");
  REQUIRE(disk.reading.size() == 1);
  CHECK(visit.got().empty());
  const bool errs = GENERATE(true, false);
  if (errs) {
    disk.kept.clear();
    disk.deliver();
  } else {
    visit.after(DiskWait::kMost - std::chrono::milliseconds(50));
    CHECK(visit.got().empty());
  }
  visit.after(std::chrono::milliseconds(errs ? 2 : 60));
  CHECK(visit.got().ends_with("content"));
  CHECK(visit.asked == 1);
  // What returns late harms nothing.
  disk.deliver();
  CHECK(is_hit(visit.get("/a")));
}

TEST_CASE("http on disk: nothing waits for a read that is late already") {
  FakeDisk disk;
  store(disk);
  Daemon second(disk);
  Visit one(second), other(second);
  one.control = other.control = "Cache-Control: no-store\r\n";  // so that the disk alone has it
  one.sends("/a");
  CHECK(one.got().empty());
  one.after(DiskWait::kMost);
  CHECK(one.got().ends_with("content"));
  other.twins.now = one.twins.now;
  other.sends("/a");
  CHECK(other.got().ends_with("content"));
  CHECK(other.asked == 1);
  CHECK(disk.reading.size() == 1);
}

TEST_CASE("http on disk: two clients wait for one read, and a read outlives its flow") {
  FakeDisk disk;
  store(disk);
  Daemon second(disk);
  Visit one(second), other(second);
  {
    Visit third(second);
    third.sends("/a");
  }
  one.sends("/a"), other.sends("/a");
  CHECK(disk.reading.size() == 1);
  disk.deliver();
  one.after(std::chrono::milliseconds(2)), other.after(std::chrono::milliseconds(2));
  CHECK((is_hit(one.got()) && is_hit(other.got())));
}

TEST_CASE("http on disk: what a request changes is erased there, too, also while it is read") {
  FakeDisk disk;
  store(disk);
  Daemon second(disk);
  Visit one(second), other(second);
  one.sends("/a");
  REQUIRE(disk.reading.size() == 1);
  other.sends("/a", "", "DELETE");
  CHECK(disk.kept.empty());
  disk.deliver();
  one.after(std::chrono::milliseconds(2));
  CHECK_FALSE(is_hit(one.got()));
  CHECK(one.asked == 1);
}

TEST_CASE("http on disk: a confirmation is not written unless it makes a difference") {
  FakeDisk disk;
  store(disk, "Cache-Control: no-cache\r\n");
  Daemon second(disk);
  Visit visit(second);
  visit.control = "Cache-Control: no-cache\r\n";
  for (int i = 0; i < 5; ++i) CHECK(is_confirmed(visit.get("/a")));
  CHECK(disk.puts == 1);
  visit.control = "Cache-Control: max-age=60\r\n";
  CHECK(is_confirmed(visit.get("/a")));
  CHECK(disk.puts == 2);
  // The server has shortened the life of what it sent before.
  visit.control = "Cache-Control: max-age=1\r\n";
  CHECK(is_confirmed(visit.get("/a", "Cache-Control: no-cache\r\n")));
  CHECK(disk.puts == 3);
}

TEST_CASE("http on disk: which requests a response answers is known without their fields") {
  FakeDisk disk;
  {
    Daemon first(disk);
    Visit visit(first);
    visit.control = "Cache-Control: max-age=3600\r\nVary: Accept-Language\r\n";
    visit.get("/a", "Accept-Language: canary-of-the-client\r\n");
    visit.control = "Cache-Control: max-age=3600\r\nVary: Cookie\r\n";
    visit.get("/b", "Cookie: canary\r\n");
  }
  REQUIRE(disk.kept.size() == 1);
  const auto& kept = disk.kept.begin()->second;
  CHECK(as_text(kept.bytes).find("canary") == std::string::npos);
  CHECK(as_text(kept.tag).find("canary") == std::string::npos);
  Daemon second(disk);
  Visit visit(second);
  CHECK(is_hit(visit.get("/a", "Accept-Language: canary-of-the-client\r\n")));
  visit.sends("/a", "Accept-Language: other\r\n");
  CHECK(disk.reading.empty());
  CHECK_FALSE(is_hit(visit.got()));
}

TEST_CASE("http on disk: flows without the dictionary on disk store and read nothing there") {
  FakeDisk disk;
  store(disk);
  Daemon second(disk);
  Visit visit(second);
  modules::Surroundings told{.line_bytes_per_second = 1'000'000, .round_trip = std::chrono::milliseconds(100), .stream_room = 1 << 20};
  const config::FeatureTable table{kDescriptor.features};
  told.features.modules = config::ModuleFeatures::standard(table);
  told.features.dedup_disk = false;
  visit.twins.near.module.on_surroundings(visit.twins.now, told);
  visit.sends("/a");
  CHECK(disk.reading.empty());
  CHECK(visit.got().ends_with("content"));
  CHECK(disk.kept.empty());  // an older one must not outlive what came now
  CHECK(is_hit(visit.get("/a")));
}

TEST_CASE("http on disk: clearing the cache clears the disk") {
  FakeDisk disk;
  store(disk);
  Daemon second(disk);
  CHECK(second.instance->clear_cache() == 7);
  CHECK(disk.kept.empty());
}

TEST_CASE("http on disk: requests of HTTP/2 wait for the disk one by one") {
  FakeDisk disk;
  const auto visit = [&](bool is_first) {
    Daemon daemon(disk);
    Twins twins(kDescriptor, 2, daemon.instance);
    h2::Client client;
    h2::Web web;
    const auto speak = [&] { twins.client_sends(client.out()), twins.server_sends(web.out()); };
    twins.on_client_bytes = [&] { (void)client.take(twins.at_client), speak(); };
    twins.on_server_bytes = [&] { (void)web.take(twins.at_server), speak(); };
    client.session.announce({{2, 0}}, 0);
    web.session.announce({{3, 100}}, 0);
    const auto fresh = client.asks("/fresh");
    const auto other = client.asks("/other");
    speak();
    twins.run();
    if (!is_first) {
      CHECK(disk.reading.size() == 2);
      CHECK_FALSE(client.messages[fresh].ended);
      CHECK(web.asked == 0);
      disk.deliver();
      daemon.now = twins.now += std::chrono::milliseconds(2);
      twins.near.module.on_timeout(twins.now);
      twins.near.collect();
      twins.run();
      CHECK(twins.near.module.counters().cache_disk_reads == 2);
    }
    CHECK(client.messages[fresh].content == web.content_of("/fresh"));
    CHECK(client.messages[other].content == web.content_of("/other"));
    CHECK(web.asked == (is_first ? 2 : 1));
    CHECK(web.not_modified == (is_first ? 0 : 1));
  };
  visit(true);
  REQUIRE(disk.kept.size() == 2);
  visit(false);
}

TEST_CASE("http on disk: a record that is cut or changed is refused or harmless, at each byte") {
  Stored stored{.phrase = "OK", .content_bytes = 3, .lifetime = 10, .etag = "\"1\""};
  stored.fields.add({"ETag", "\"1\""});
  stored.vary = {{"accept", "x"}};
  Buffer bytes = write_stored(stored, {});
  append(bytes, as_bytes("abc"));
  const RequestHead request{.method = "GET", .target = "/", .minor = 1, .fields = {}};
  REQUIRE(read_stored(Slice::copy_of(bytes), request, true, {}));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(read_stored(Slice::copy_of(Bytes(bytes).first(size)), request, true, {}));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Buffer changed = bytes;
    changed[i] ^= std::byte{0xff};
    if (const auto read = read_stored(Slice::copy_of(changed), request, true, {})) CHECK(read->content_bytes == 3);
  }
}

}  // namespace longhaul::http
