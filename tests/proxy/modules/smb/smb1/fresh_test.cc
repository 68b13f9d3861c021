// SPDX-License-Identifier: Apache-2.0
// Changes beside a server that reports none: what the far half concludes from the times of files, which count
// in units of two seconds.
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

using namespace std::chrono_literals;

// A client that has read from a file which was written at that time.
struct Reader {
  Pair pair;
  std::uint16_t fid = 0, mid = 10;

  explicit Reader(unsigned written) {
    Surroundings surroundings;
    surroundings.line_bytes_per_second = 1'000'000;
    surroundings.round_trip = 100ms;
    pair.near.on_surroundings(pair.now, surroundings);
    pair.far.on_surroundings(pair.now, surroundings);
    pair.server.files["F"] = some_bytes(300'000);
    pair.server.written["F"] = written;
    fid = fid_of(pair.ask(unicode(create(std::string_view("\0F\0", 3), 10))));
    CHECK(read_text() == pair.server.files["F"].substr(100'000, 4));
  }
  std::string read_text() { return data_of(pair.ask(read(fid, 100'000, 4, ++mid))); }
  std::uint64_t noticed() const { return pair.far.counters().changes_noticed; }
  void pass(modules::Duration time) {
    pair.pass(time);
    pair.run();
  }
  void change() { pair.server.files["F"].replace(100'000, 4, "ELSE"); }
};

TEST_CASE("SMB1: a change within the same unit of time as the write before the open is noticed") {
  Reader reader(Server::local_time(1, 1, 0));
  CHECK(reader.noticed() == 0);
  reader.change();
  reader.pass(1100ms);
  CHECK(reader.noticed() == 1);
  CHECK(reader.read_text() == "ELSE");
}

TEST_CASE("SMB1: a change within the same unit of time as the change before it is noticed") {
  Reader reader(Server::local_time(1, 0, 0));
  reader.pass(1100ms);
  CHECK(reader.noticed() == 0);
  reader.pair.server.written["F"] = Server::local_time(1, 1, 2);
  reader.pass(1100ms);
  CHECK(reader.noticed() == 1);
  reader.change();
  reader.pass(1100ms);
  CHECK(reader.noticed() == 2);
  CHECK(reader.read_text() == "ELSE");
}

TEST_CASE("SMB1: a look that comes late, too, notices a change within the unit of time") {
  Reader reader(Server::local_time(1, 1, 0));
  reader.change();
  reader.pass(10s);
  CHECK(reader.noticed() == 1);
  CHECK(reader.read_text() == "ELSE");
  reader.pass(1100ms);
  CHECK(reader.noticed() == 1);
}

TEST_CASE("SMB1: a file that is not written counts as changed only until its unit of time is over") {
  Reader recent(Server::local_time(1, 1, 0)), old(Server::local_time(1, 0, 59));
  for (int i = 0; i < 10; ++i) {
    recent.pass(1100ms);
    old.pass(1100ms);
  }
  CHECK(recent.noticed() == 3);
  CHECK(old.noticed() == 0);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
