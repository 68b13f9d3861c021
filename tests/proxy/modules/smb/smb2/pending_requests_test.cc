// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/pending_requests.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/ids.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

Pending pending_of(test::AnyId id, Command command = Command::read) {
  Pending request;
  request.command = command;
  request.id = id;
  request.session = 5;
  request.tree = 6;
  request.file = {7, 8};
  request.length = 9;
  return request;
}

Header response_to(test::AnyId id, Command command = Command::read) {
  Header header;
  header.flags = header_flags::response;
  header.command = command;
  header.message_id = id;
  return header;
}

Header interim_response_to(test::AnyId id) {
  Header header = response_to(id);
  header.flags |= header_flags::async;
  header.status = Status::pending;
  header.async_id = 77;
  return header;
}

}  // namespace

TEST_CASE("a final answer takes its request with all that was noted of it") {
  PendingRequests requests;
  requests.add(pending_of(3));
  const auto match = requests.answered(response_to(3));
  REQUIRE(match);
  CHECK_FALSE(match->interim);
  CHECK(match->request.length == 9);
  CHECK_FALSE(requests.find(3_message));
  CHECK_FALSE(requests.answered(response_to(3)));
}

TEST_CASE("an answer to another command answers nothing") {
  PendingRequests requests;
  requests.add(pending_of(3));
  CHECK_FALSE(requests.answered(response_to(3, Command::write)));
  CHECK_FALSE(requests.answered(response_to(4)));
  CHECK(requests.find(3_message));
}

TEST_CASE("an interim answer leaves the request, which knows its async id from then on") {
  PendingRequests requests;
  requests.add(pending_of(3));
  const auto match = requests.answered(interim_response_to(3));
  REQUIRE(match);
  CHECK(match->interim);
  CHECK(match->request.id == 3_message);
  CHECK(match->request.session == 5);
  CHECK(match->request.tree == 6);
  CHECK(match->request.file == FileId{7, 8});
  CHECK(match->request.length == 0);
  REQUIRE(requests.find(3_message));
  CHECK(requests.find(3_message)->async);
  CHECK(requests.find(3_message)->async_id == 77);
  CHECK(requests.find(3_message)->length == 9);
}

TEST_CASE("what a request counts of its file ends with it") {
  PendingRequests requests;
  Files files;
  const FileGroupRef file = files.group_of({.path = u"NAME"});
  const auto add = [&] {
    Pending request = pending_of(3, Command::create);
    request.opens_file = Counted(file, &FileCounts::opening);
    request.changes_file = Counted(file, &FileCounts::unsettled);
    requests.add(std::move(request));
  };
  add();
  CHECK(file->count(&FileCounts::opening) == 1);
  std::optional<Pending> taken;
  std::optional<PendingRequests::Match> match;
  SECTION("answered") { match = requests.answered(response_to(3, Command::create)); }
  SECTION("taken") { taken = requests.take(3_message); }
  SECTION("cleared") { requests.clear(); }
  SECTION("replaced") {
    add();
    CHECK(file->count(&FileCounts::opening) == 1);
    requests.clear();
  }
  CHECK(file->count(&FileCounts::opening) == 0);
  CHECK(file->count(&FileCounts::unsettled) == 0);
}

TEST_CASE("the memory of requests includes the names that they open, and ends with them") {
  PendingRequests requests;
  const auto add = [&](const std::u16string& path) {
    Pending request = pending_of(3, Command::create);
    request.opening = std::make_unique<Open>();
    request.opening->name.path = path;
    requests.add(std::move(request));
  };
  add(u"A");
  const std::size_t with_one_letter = requests.held_bytes();
  add(u"ABCD");
  CHECK(requests.size() == 1);
  CHECK(requests.held_bytes() == with_one_letter + 3 * sizeof(char16_t));
  CHECK(requests.take(3_message));
  CHECK(requests.held_bytes() == 0);
  CHECK_FALSE(requests.take(3_message));
}

TEST_CASE("there are too many requests beyond the limit") {
  PendingRequests requests;
  for (std::uint64_t id = 0; id < PendingRequests::kMost; ++id) requests.add(pending_of(id));
  CHECK_FALSE(requests.are_too_many());
  requests.add(pending_of(PendingRequests::kMost));
  CHECK(requests.are_too_many());
  requests.clear();
  CHECK(requests.size() == 0);
  CHECK(requests.held_bytes() == 0);
}
