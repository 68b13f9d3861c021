// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/opens_ahead.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {
namespace {

const TimePoint kOffered = TimePoint{} + std::chrono::seconds(100);

struct AheadTable {
  OpensAhead::Number add(const std::string& name, std::uint64_t bytes = 1) {
    const auto number = opens.next_number();
    opens.add(number, {.session = kSession,
                       .tree = kTree,
                       .asked = {"reads", name},
                       .name = {},
                       .bytes = bytes,
                       .questions = {}});
    return number;
  }
  OpensAhead::Number offer(const std::string& name, const FileId& file, TimePoint now) {
    const auto number = add(name);
    Open open;
    open.file = file;
    opens.opened(number, open);
    opens.offered(number, now + OpensAhead::kLife);
    return number;
  }
  static OpeningRow::Opened asked(const std::string& name, TreeId tree = kTree) {
    return {{"reads", name}, kSession, tree, {}};
  }
  OpensAhead opens;
};

}  // namespace

TEST_CASE("an open made ahead fits the CREATE that asks for exactly that") {
  AheadTable table;
  const auto number = table.add("a");
  CHECK(table.opens.fitting(table.asked("a")) == number);
  CHECK_FALSE(table.opens.fitting(table.asked("b")));
  CHECK_FALSE(table.opens.fitting(table.asked("a", kTree + 1)));
  CHECK_FALSE(table.opens.fitting({{"writes", "a"}, kSession, kTree, {}}));
}

TEST_CASE("an open that is unwanted, waited for or taken back fits no CREATE") {
  AheadTable table;
  const auto unwanted = table.add("unwanted");
  table.opens.find(unwanted)->unwanted = true;
  CHECK_FALSE(table.opens.fitting(table.asked("unwanted")));

  const auto awaited = table.add("awaited");
  table.opens.wait_for(awaited, create_request(3, "awaited"));
  CHECK_FALSE(table.opens.fitting(table.asked("awaited")));

  const auto offered = table.offer("offered", {1, 2}, kOffered);
  CHECK(table.opens.fitting(table.asked("offered")) == offered);
  table.opens.find(offered)->state = OpensAhead::State::taken_back;
  CHECK_FALSE(table.opens.fitting(table.asked("offered")));
  CHECK(table.opens.taken_back() == std::vector{offered});
}

TEST_CASE("CREATEs that wait for an open made ahead are counted until they are taken or it is removed") {
  AheadTable table;
  const auto first = table.add("a"), second = table.add("b");
  table.opens.wait_for(first, create_request(3, "a"));
  table.opens.wait_for(second, create_request(4, "b"));
  CHECK(table.opens.waiting() == 2);
  const auto waiting = table.opens.take_waiting(first);
  REQUIRE(waiting);
  CHECK(waiting->header().message_id == 3_message);
  CHECK_FALSE(table.opens.take_waiting(first));
  CHECK(table.opens.waiting() == 1);
  CHECK(table.opens.remove(second).waiting->header().message_id == 4_message);
  CHECK(table.opens.waiting() == 0);
}

TEST_CASE("a file leads to its open made ahead until that is removed") {
  AheadTable table;
  const auto number = table.offer("a", {1, 2}, kOffered);
  const auto opening = table.add("b");
  CHECK(table.opens.of_file({1, 2}) == number);
  table.opens.remove(opening);
  CHECK(table.opens.of_file({1, 2}) == number);
  table.opens.remove(number);
  CHECK_FALSE(table.opens.of_file({1, 2}));
  CHECK(table.opens.size() == 0);
}

TEST_CASE("a server that gives all files one id does not mix up the removal of opens made ahead") {
  AheadTable table;
  const auto offered = table.offer("a", {}, kOffered);  // the id of one that is still being opened
  const auto opening = table.add("b");
  table.opens.remove(opening);
  CHECK(table.opens.of_file({}) == offered);
}

TEST_CASE("an offer expires after its life, the oldest first") {
  AheadTable table;
  const auto old = table.offer("a", {1, 1}, kOffered);
  const auto later = table.offer("b", {2, 2}, kOffered + std::chrono::seconds(1));
  table.add("c");
  CHECK(table.opens.next_expiry() == kOffered + OpensAhead::kLife);
  CHECK(table.opens.expired(kOffered + OpensAhead::kLife - std::chrono::milliseconds(1)).empty());
  CHECK(table.opens.expired(kOffered + OpensAhead::kLife) == std::vector{old});
  table.opens.find(old)->state = OpensAhead::State::taken_back;
  CHECK(table.opens.next_expiry() == kOffered + OpensAhead::kLife + std::chrono::seconds(1));
  table.opens.remove(later);
  CHECK_FALSE(table.opens.next_expiry());
}

TEST_CASE("the bytes of all opens made ahead are added") {
  AheadTable table;
  table.add("a", 100);
  const auto large = table.add("b", 1000);
  CHECK(table.opens.bytes() == 1100);
  table.opens.remove(large);
  CHECK(table.opens.bytes() == 100);
}

}  // namespace longhaul::smb::smb2::test
