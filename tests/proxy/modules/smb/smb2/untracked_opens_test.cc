// SPDX-License-Identifier: Apache-2.0
// Opens that only the near half tracks: for the far half they are one too many, because CLOSEs that the near
// half has answered are still on their way to the server. What the near half waits for must come all the
// same.
#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/far_listings.h"
#include "proxy/modules/smb/smb2/far_metadata.h"
#include "proxy/modules/smb/smb2/question.h"
#include "tests/proxy/modules/smb/smb2/lone_far_side.h"

namespace longhaul::smb::smb2::test {
namespace {

constexpr FileId kUntracked{1, 1 << 20};

// A part of a far half that can track no more opens.
template <class Part>
struct FullFarSide {
  FullFarSide() {
    side.line.features.metadata_relaxed = true;  // this server cannot watch
    while (side.connection().opens().size() < Connection::kMostOpens)
      open_file(side.connection(), id, "f", {.file = {2, take_next(id).number()}});
  }
  // A request of the client comes to its end at the server. Returns what the near half is told then.
  std::vector<TwinMessage> goes(const Message& request, std::initializer_list<Message> answers) {
    side.connection().on_request(request);
    for (const Message& answer : answers) {
      const Connection::Outcome outcome = side.connection().on_response(answer);
      part.on_outcome({}, outcome);
      (void)part.on_response({}, answer, outcome);
      part.after_response({}, outcome);
    }
    return side.told();
  }
  // So that the near half passes its client's requests on.
  static void is_given_up(const std::vector<TwinMessage>& told, Command command) {
    REQUIRE(told.size() == 1);
    const auto& answer = std::get<Answer>(told[0]);
    CHECK(answer.open == key_of(kSession, kTree, kUntracked));
    CHECK(answer.command == static_cast<std::uint16_t>(command));
    CHECK(Status{answer.status} == Status::pending);
  }

  LoneFarSide side;
  Part part{side};
  MessageId id{10};
};

TEST_CASE("a query that is sent with an open is given up if the far half does not track the open") {
  FullFarSide<FarMetadata> full;
  const Slice question = *question_of({.info_class = file_info::standard, .output_bytes = 4096});
  full.part.on_twin({},
                    Expect{.message = number_of(full.id),
                           .command = static_cast<std::uint16_t>(Command::query_info),
                           .request = question},
                    {});
  const auto told = full.goes(create_request(full.id, "f"),
                              {answer(Command::create, full.id, create_answer_body({.file = kUntracked}))});
  full.is_given_up(told, Command::query_info);
  CHECK(as_text(std::get<Answer>(told[0]).request.bytes()) == as_text(question.bytes()));
  CHECK(full.side.sent.empty());
}

TEST_CASE("a listing is given up if the far half does not track its directory") {
  FullFarSide<FarListings> full;
  Enumerate enumerate{.message = number_of(full.id),
                      .info_class = file_info::names,
                      .pattern = Slice::copy_of(as_bytes(utf16("*")))};
  SECTION("begun by a query of its own") {
    enumerate.open = key_of(kSession, kTree, kUntracked);
    full.part.on_twin({}, enumerate, {});
    full.is_given_up(
        full.goes(request(Command::query_directory, full.id, query_directory_request_body(kUntracked)),
                  {answer(Command::query_directory, full.id, names_answer_body({"a", "b"}))}),
        Command::query_directory);
  }
  SECTION("begun in the compound that opens the directory") {
    full.part.on_twin({}, enumerate, {});
    const MessageId create = full.id + 1;
    full.is_given_up(
        full.goes(create_and_list_request(create, full.id),
                  {answer(Command::create, create,
                          create_answer_body({.file = kUntracked, .attributes = file_attributes::directory})),
                   answer(Command::query_directory, full.id, names_answer_body({"a", "b"}))}),
        Command::query_directory);
  }
  CHECK(full.side.sent.empty());
}

}  // namespace
}  // namespace longhaul::smb::smb2::test
