// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_volumes.h"

#include "proxy/modules/smb/smb1/conversation.h"
#include "proxy/modules/smb/smb1/questions.h"
#include "proxy/modules/smb/smb1/volumes.h"

namespace longhaul::smb::smb1::testing {
namespace {

using namespace std::chrono_literals;

struct Volume {
  NearVolumes volumes;
  TimePoint now{};
  Header query;
  std::string question = "sizes";

  explicit Volume(bool relaxed = false) {
    query.uid = kUid;
    query.tid = kTid;
    Surroundings surroundings;
    surroundings.round_trip = 200ms;
    surroundings.features.metadata_relaxed = relaxed;
    volumes.on_surroundings(surroundings);
  }
  void answered() { volumes.answered(query, question, now, volumes.generation(), known("old")); }
  void looked(std::string_view data, std::uint32_t status = 0) {
    const Answer answer{.open = volume_key(kUid, kTid),
                        .command = static_cast<std::uint16_t>(Command::trans2),
                        .status = status,
                        .request = Slice::copy_of(as_bytes(question))};
    CHECK(NearVolumes::is_look(answer));
    volumes.looked(answer, joined_answer({}, as_bytes(data)));
  }
  KnownAnswer known(std::string_view data) const { return known_answer({}, as_bytes(data), now); }
  std::string found() const {
    const KnownAnswer* known = volumes.find(now, query, question);
    return known ? std::string(as_text(known->data.bytes())) : "none";
  }
};

TEST_CASE("SMB1: a volume's answer is repeated while the far half looks at it, for three seconds") {
  Volume volume;
  volume.answered();
  CHECK(volume.found() == "none");  // nobody looks yet
  volume.looked("new");
  CHECK(volume.found() == "new");
  volume.now += 3s;
  CHECK(volume.found() == "new");
  volume.now += 1ms;
  CHECK(volume.found() == "none");
}

TEST_CASE("SMB1: a look counts only about what the server has told the client since the last change") {
  Volume volume;
  volume.looked("new");
  CHECK(volume.found() == "none");
  const std::uint64_t before = volume.volumes.generation();
  volume.volumes.drop();
  volume.volumes.answered(volume.query, volume.question, volume.now, before, volume.known("old"));
  volume.looked("new");
  CHECK(volume.found() == "none");
  volume.answered();
  volume.looked("", 0xC0000022);  // refused: it cannot be watched
  volume.looked("new");
  CHECK(volume.found() == "none");
}

TEST_CASE("SMB1: another tree's, user's or query's answer is another one") {
  Volume volume;
  volume.answered();
  volume.looked("new");
  SECTION("tree") { ++volume.query.tid; }
  SECTION("user") { ++volume.query.uid; }
  SECTION("query") { volume.question = "label"; }
  CHECK(volume.found() == "none");
}

TEST_CASE("SMB1: relaxed, a snapshot of a volume holds for two round trips") {
  Volume volume(true);
  volume.answered();
  volume.now += 400ms;
  CHECK(volume.found() == "old");
  volume.now += 1ms;
  CHECK(volume.found() == "none");
}

TEST_CASE("SMB1: a request that may use space makes a volume's answers void, and so does its answer") {
  Conversation talk;
  const Open& file = talk.open("F", 10);
  Volume volume;
  volume.answered();
  volume.looked("new");
  const auto reads = message_in(read(file.fid, 0, 5, 11));
  CHECK_FALSE(volume.volumes.on_request(reads, talk.connection));
  CHECK(volume.found() == "new");
  const auto writes = message_in(write(file.fid, 0, as_bytes("x"), 12));
  CHECK(volume.volumes.on_request(writes, talk.connection));
  CHECK(volume.found() == "none");
  volume.answered();
  volume.looked("new");
  CHECK_FALSE(volume.volumes.on_answer(number_of(reads.header)));
  CHECK(volume.found() == "new");
  CHECK(volume.volumes.on_answer(number_of(writes.header)));
  CHECK(volume.found() == "none");
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
