// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/row_creates.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/ids.h"

namespace longhaul::smb::smb2::test {
namespace {

Slice question_in_row(std::uint8_t info_class, InfoType type = InfoType::file) {
  return question_of({.type = type, .info_class = info_class, .output_bytes = 64}).value();
}

}  // namespace

TEST_CASE("a CREATE in a row brings the queries that are expected about its file") {
  RowCreates creates;
  creates.add(7_message);
  CHECK(creates.expect(7_message, question_in_row(file_info::basic)));
  CHECK(creates.expect(7_message, question_in_row(file_info::standard)));
  CHECK(creates.expect(7_message,
                       question_in_row(fs_info::size, InfoType::file_system)));  // not about the file
  const auto done = creates.opened(7_message);
  CHECK(done.in_row);
  REQUIRE(done.questions);
  REQUIRE(done.questions->size() == 2);
  CHECK(as_text((*done.questions)[1].bytes()) == as_text(question_in_row(file_info::standard).bytes()));
  CHECK_FALSE(creates.opened(7_message).in_row);  // once
}

TEST_CASE("a CREATE outside a row, or one that fails, brings none") {
  RowCreates creates;
  CHECK(creates.expect(7_message, question_in_row(file_info::basic)));
  CHECK_FALSE(creates.opened(7_message).in_row);

  creates.add(8_message);
  CHECK(creates.expect(8_message, question_in_row(file_info::basic)));
  creates.failed(8_message);
  CHECK_FALSE(creates.opened(8_message).in_row);

  creates.add(8_message);  // nothing is left of the earlier one
  const auto done = creates.opened(8_message);
  CHECK(done.in_row);
  CHECK_FALSE(done.questions);
}

TEST_CASE("a twin cannot have more queries kept than one of ours announces") {
  RowCreates creates;
  creates.add(0_message);
  for (int n = 0; n < 100; ++n) CHECK(creates.expect(0_message, question_in_row(file_info::basic)));
  CHECK(creates.opened(0_message).questions->size() == OpeningRow::kMostQuestions);
  for (std::uint64_t id = 0; id < Connection::kMostPending; ++id)
    REQUIRE(creates.expect(MessageId{id}, question_in_row(file_info::basic)));
  CHECK_FALSE(creates.expect(MessageId{Connection::kMostPending}, question_in_row(file_info::basic)));
}

}  // namespace longhaul::smb::smb2::test
