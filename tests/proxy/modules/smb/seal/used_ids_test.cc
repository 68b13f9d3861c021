// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/used_ids.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::seal {
namespace {

bool takes(UsedIds& ids, smb2::test::AnyId id, std::uint16_t charge = 1,
           smb2::Command command = smb2::Command::read) {
  return ids.use({.credit_charge = charge, .command = command, .message_id = id}).has_value();
}

}  // namespace

TEST_CASE("used ids: each is taken once, with all that its request is charged") {
  UsedIds ids;
  CHECK(takes(ids, 0, 0));
  CHECK(takes(ids, 10, 4));
  for (const int id : {0, 10, 11, 13}) CHECK_FALSE(takes(ids, id));
  CHECK_FALSE(takes(ids, 8, 3));
  CHECK(takes(ids, 8, 2));
  CHECK(takes(ids, 14, 0));
  CHECK_FALSE(takes(ids, 14));
  CHECK_FALSE(takes(ids, ~0ull));
  CHECK_FALSE(takes(ids, 1ull << 62));
}

TEST_CASE("used ids: a CANCEL has the id of another request") {
  UsedIds ids;
  for (int i = 0; i < 2; ++i) CHECK(takes(ids, 7, 1, smb2::Command::cancel));
  CHECK(takes(ids, 7));
  CHECK(takes(ids, 7, 1, smb2::Command::cancel));
}

TEST_CASE("used ids: those of frames that are only noted count") {
  using namespace smb2::test;
  UsedIds ids;
  for (const int id : {3, 3, 4})  // no error yet
    ids.note(request(smb2::Command::read, id, read_request_body({}, 0, 1)).frame);
  ids.note(answer(smb2::Command::read, 5, read_answer_body("x")).frame);
  CHECK_FALSE(takes(ids, 3));
  CHECK_FALSE(takes(ids, 4));
  CHECK(takes(ids, 5));
}

TEST_CASE("used ids: gaps cost bounded memory, and the lowest are closed") {
  UsedIds ids;
  const std::size_t most = UsedIds::kMostRuns;
  for (std::uint64_t id = 0; id < 2 * most + 20; id += 2) CHECK(takes(ids, id));
  CHECK(ids.state_bytes() <= most * sizeof(Interval));
  CHECK_FALSE(takes(ids, 1));
  CHECK_FALSE(takes(ids, 2 * most + 18));
  CHECK(takes(ids, 2 * most + 17));
}

}  // namespace longhaul::smb::seal
