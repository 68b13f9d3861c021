// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/opening_questions.h"

#include "proxy/modules/smb/smb1/conversation.h"
#include "proxy/modules/smb/smb1/questions.h"

namespace longhaul::smb::smb1::testing {
namespace {

using Ask = OpeningQuestions::Ask;
using Kind = OpeningQuestions::Kind;

std::string question_about(Trans2 function, std::uint16_t level) {
  Buffer question;
  for (const std::uint16_t field :
       {static_cast<std::uint16_t>(function), level, std::uint16_t{2}, std::uint16_t{100}})
    append_field(question, field);
  return std::string(as_text(question));
}

TEST_CASE("SMB1: what a client asked about its last files is asked with the next open of that kind") {
  OpeningQuestions questions;
  const std::string basic = question_about(Trans2::query_file_information, 0x101);
  const Slice frame = create("F", 10);
  const Message opens = message_in(frame);
  CHECK(questions.opening(opens, Ask::about_files).empty());
  questions.asked(Kind::data, basic);
  const auto sent = questions.opening(opens, Ask::about_files);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0] == basic);
  const auto opening = questions.opened(number_of(opens.header));
  REQUIRE(opening);
  CHECK(opening->kind == Kind::data);
  CHECK(opening->questions == std::vector{basic});
  CHECK_FALSE(questions.opened(number_of(opens.header)));
  questions.in_vain(Kind::data, basic);
  CHECK(questions.opening(opens, Ask::about_files).empty());
}

TEST_CASE("SMB1: queries about volumes, or all, can be left out") {
  OpeningQuestions questions;
  questions.asked(Kind::data, question_about(Trans2::query_file_information, 0x101));
  questions.asked(Kind::data, question_about(Trans2::query_fs_information, 0x103));
  const Slice frame = create("F", 10);
  const Message opens = message_in(frame);
  CHECK(questions.opening(opens, Ask::also_about_volumes).size() == 2);
  CHECK(questions.opening(opens, Ask::about_files).size() == 1);
  CHECK(questions.opening(opens, Ask::nothing).empty());
  CHECK(questions.opened(number_of(opens.header)));  // its kind is known all the same
}

TEST_CASE("SMB1: opens are of a kind by what they ask for; a new file is asked for its number") {
  OpeningQuestions questions;
  const auto kind = [&](CreateOptions options) {
    const Slice frame = create("F", 10, options);
    const Message opens = message_in(frame);
    (void)questions.opening(opens, Ask::about_files);
    return questions.opened(number_of(opens.header))->kind;
  };
  CHECK(kind({}) == Kind::data);
  CHECK(kind({.disposition = 3}) == Kind::data);
  CHECK(kind({.disposition = 5}) == Kind::emptied);
  CHECK(kind({.access = 0x80}) == Kind::attributes);
  CHECK(kind({.options = 1}) == Kind::directory);
  CHECK(questions.opening(message_in(create("F", 10, {.disposition = 5})), Ask::about_files).size() == 1);
}

TEST_CASE("SMB1: no more opens than the limit are remembered") {
  OpeningQuestions questions;
  for (std::size_t i = 0; i <= OpeningQuestions::kMostOpening; ++i)
    (void)questions.opening(message_in(create("F", static_cast<std::uint16_t>(i))), Ask::nothing);
  CHECK(questions.opened(number_of(0)));
  CHECK_FALSE(questions.opened(number_of(OpeningQuestions::kMostOpening)));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
