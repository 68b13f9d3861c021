// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/listings_with_open.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/lone_near_side.h"

namespace longhaul::smb::smb2::test {
namespace {

constexpr FileId kDirectory{3, 4};

// A client that opens a directory and lists it in one message, with the ids 10 and 11.
struct Listing {
  Listing() { connect(side.tracked); }

  void sends(std::uint8_t info_class = file_info::names, std::uint8_t flags = 0) {
    const Message message = create_and_list_request(10, 11, info_class, flags);
    side.tracked.on_request(message);
    listings.passes(message);
  }
  void is_opened(Status status = Status::success) {
    const Granted granted{.file = kDirectory, .attributes = file_attributes::directory};
    side.tracked.on_response(status == Status::success
                                 ? answer(Command::create, 10, create_answer_body(granted))
                                 : error(Command::create, 10, status));
  }
  // The response to its query; nullopt: an error.
  std::optional<ClientListing> is_answered(const std::optional<Body>& body) {
    const Message message = body ? answer(Command::query_directory, 11, *body)
                                 : error(Command::query_directory, 11, Status::no_such_file);
    const Connection::Outcome outcome = side.tracked.on_response(message);
    REQUIRE(outcome.answered.size() == 1);
    const auto parsed = parse_buffer_response(message.first().bytes);
    return listings.answered(outcome.answered[0].request,
                             body && parsed ? std::optional(*parsed) : std::nullopt);
  }

  LoneNearSide side;
  NameChanges name_changes;
  ListingsWithOpen listings{side, name_changes};
};

TEST_CASE("the far half is told of a listing that begins with its open, and the rest follows that") {
  Listing t;
  t.name_changes.changed(kSession, kTree);
  t.sends();
  const auto told = t.side.told();
  REQUIRE(told.size() == 1);
  const auto& enumerate = std::get<Enumerate>(told[0]);
  CHECK(enumerate.open == OpenKey{});  // not known yet
  CHECK(id_of(enumerate.message) == 11_message);
  CHECK(enumerate.info_class == file_info::names);
  CHECK(as_text(enumerate.pattern.bytes()) == utf16("*"));

  t.is_opened();
  // Others may have changed the folder after the server has listed it, and this client before: then the rest
  // is fetched again.
  t.side.tracked.open(kDirectory)->doubted();
  t.name_changes.changed(kSession, kTree);
  const auto listing = t.is_answered(names_answer_body({"a", "b", "c"}));
  REQUIRE(listing);
  CHECK(listing->generation == 11_message);
  CHECK(listing->info_class == file_info::names);
  CHECK(listing->active);
  CHECK(listing->asked);
  CHECK_FALSE(listing->at_server);
  CHECK(listing->served == 3);
  CHECK(listing->seen.changes == 1);
  CHECK(listing->seen.doubts == 1);
  CHECK(t.side.told().empty());
}

TEST_CASE("a listing that begins with its open ends with an error, or with what cannot be read") {
  Listing t;
  t.sends();
  SECTION("the server lists nothing") {
    t.is_opened();
    CHECK_FALSE(t.is_answered(std::nullopt));
  }
  SECTION("the directory is not opened") {
    t.is_opened(Status::access_denied);
    CHECK_FALSE(t.is_answered(names_answer_body({"a"})));
  }
  SECTION("entries that are cut") {
    t.is_opened();
    CHECK_FALSE(t.is_answered(buffer_answer_body("1234567")));
  }
  // It is forgotten: a second response, or another message with that id, continues nothing.
  Pending again;
  again.id = 11_message;
  again.session = kSession, again.tree = kTree, again.file = kDirectory;
  CHECK_FALSE(t.listings.answered(again, BufferResponse{}));
}

TEST_CASE("nothing is told of messages that begin no listing that can be continued") {
  Listing t;
  SECTION("queries of their own") {
    const Message alone = request(Command::query_directory, 11, query_directory_request_body(kDirectory));
    t.side.tracked.on_request(alone);
    t.listings.passes(alone);
  }
  SECTION("entries of an unknown class") { t.sends(99); }
  SECTION("not from the beginning") { t.sends(file_info::names, query_directory_flags::index_specified); }
  SECTION("switched off") {
    t.side.around.features.metadata = false;
    t.sends();
  }
  CHECK(t.side.told().empty());
  t.is_opened();
  Pending request;
  request.id = 11_message;
  request.session = kSession, request.tree = kTree, request.file = kDirectory;
  CHECK_FALSE(t.listings.answered(request, BufferResponse{}));
}

}  // namespace
}  // namespace longhaul::smb::smb2::test
