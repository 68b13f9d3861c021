// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/opening_questions.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/ids.h"
#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::smb::smb2 {
namespace {

using FileSystems = OpeningQuestions::FileSystems;
using OpenKind = OpeningQuestions::Kind;

CreateRequest create_for(std::uint32_t access, std::uint32_t options = 0) {
  CreateRequest create;
  create.desired_access = access;
  create.options = options;
  return create;
}

bool asks_about_volume(std::span<const std::string> questions) {
  return std::any_of(questions.begin(), questions.end(), [](const std::string& question) {
    return request_of(as_bytes(question))->type == InfoType::file_system;
  });
}

std::string question_about(std::uint8_t info_class) {
  QueryInfoRequest request;
  request.info_class = info_class;
  request.output_bytes = ~0u;
  return std::string(as_text(question_of(request)->bytes()));
}

}  // namespace

TEST_CASE("usual queries are sent with the first opens, about the volume only where that is allowed") {
  OpeningQuestions openings;
  const auto with = openings.opening(1_message, create_for(access::read_data), FileSystems::included);
  CHECK_FALSE(with.empty());
  CHECK(asks_about_volume(with));
  const auto without = openings.opening(2_message, create_for(access::read_data), FileSystems::excluded);
  CHECK(without.size() == with.size() - 1);
  CHECK_FALSE(asks_about_volume(without));
  CHECK(openings.opening(3_message, create_for(0, create_options::directory_file), FileSystems::included)
            .empty());
}

TEST_CASE("the answer to a CREATE takes the queries that were sent with it") {
  OpeningQuestions openings;
  const auto sent = openings.opening(1_message, create_for(access::read_attributes), FileSystems::excluded);
  const std::vector<std::string> questions(sent.begin(), sent.end());
  const auto opened = openings.opened(1_number);
  REQUIRE(opened);
  CHECK(opened->kind == OpenKind::attributes);
  CHECK(opened->questions == questions);
  CHECK_FALSE(openings.opened(1_number));
  (void)openings.opening(2_message, create_for(access::read_data), FileSystems::excluded);
  openings.answered(2_number);
  CHECK_FALSE(openings.opened(2_number));
}

TEST_CASE("an open made ahead has the queries that the far half has sent") {
  OpeningQuestions openings;
  const std::string question = question_about(file_info::internal);
  openings.opening_with(1_message, create_for(access::write_data), {Slice::copy_of(as_bytes(question))});
  const auto opened = openings.opened(1_number);
  REQUIRE(opened);
  CHECK(opened->kind == OpenKind::data);
  CHECK(opened->questions == std::vector{question});
}

TEST_CASE("queries follow the client's habits, for each kind of open") {
  OpeningQuestions openings;
  const std::string question = question_about(file_info::internal);
  const auto sends = [&](test::AnyId id, std::uint32_t access) {
    const auto questions = openings.opening(MessageId{id}, create_for(access), FileSystems::included);
    return std::find(questions.begin(), questions.end(), question) != questions.end();
  };
  CHECK_FALSE(sends(1, access::read_attributes));
  for (int i = 0; i < 4; ++i) openings.asked(OpenKind::attributes, question);
  CHECK(sends(2, access::read_attributes));
  CHECK_FALSE(sends(3, access::read_data));
  for (int i = 0; i < 8; ++i) openings.in_vain(OpenKind::attributes, question);
  CHECK_FALSE(sends(4, access::read_attributes));
}

TEST_CASE("with too many CREATEs under way nothing is asked") {
  OpeningQuestions openings;
  for (std::uint64_t id = 0; id < OpeningQuestions::kMostOpening; ++id)
    (void)openings.opening(MessageId{id}, create_for(access::read_data), FileSystems::excluded);
  const MessageId beyond{OpeningQuestions::kMostOpening};
  CHECK(openings.opening(beyond, create_for(access::read_data), FileSystems::excluded).empty());
  CHECK_FALSE(openings.opened(number_of(beyond)));
  CHECK(openings.opened(0_number));
}

}  // namespace longhaul::smb::smb2
