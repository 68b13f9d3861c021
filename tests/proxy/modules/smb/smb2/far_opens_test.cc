// SPDX-License-Identifier: Apache-2.0
// The far half's part alone; opens_test.cc and offered_opens_test.cc have both halves.
#include "proxy/modules/smb/smb2/far_opens.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/lone_far_side.h"

namespace longhaul::smb::smb2::test {
namespace {

// A client that has listed a folder and opens its files in that order.
struct OpeningInOrder {
  OpeningInOrder() {
    side.line.features.metadata_relaxed = true;
    side.line.line_bytes_per_second = 1'000'000;
    side.line.round_trip = std::chrono::milliseconds(100);
    const Open& folder = open_file(side.connection(), take_next(id), "dir",
                                   {.file = next_file(), .attributes = file_attributes::directory});
    const Body names = names_answer_body({"a", "b", "c", "d", "e", "f"});
    const Message listed = answer(Command::query_directory, take_next(id), names);
    opens.listed(folder.key, 1_message, file_info::names,
                 Slice::copy_of(parse_buffer_response(listed.first().bytes)->buffer));
  }
  void opens_and_reads(std::string_view name) {
    CreateRequest create;
    create.desired_access = access::read_data | access::synchronize;
    create.disposition = Disposition::open;
    create.share_access = 7;
    const FileId file = next_file();
    const MessageId by = take_next(id);
    const Message request = create_request(by, "dir\\" + std::string(name), create);
    side.connection().on_request(request);
    REQUIRE(opens.on_request({}, request, {}) == Taken::no);
    const Message opened = answer(Command::create, by, create_answer_body({.file = file}));
    const Connection::Outcome outcome = side.connection().on_response(opened);
    opens.on_outcome({}, outcome);
    opens.after_response({}, outcome);
    const Message read = test::request(Command::read, take_next(id), read_request_body(file, 0, 1));
    REQUIRE(opens.on_request({}, read, {}) == Taken::no);
  }
  FileId next_file() { return {1, ++files}; }

  LoneFarSide side;
  FarOpens opens{side};
  MessageId id{10};
  std::uint64_t files = 0;
};

TEST_CASE("no file is opened ahead on a connection with so many opens that it might not be tracked") {
  OpeningInOrder t;
  const bool many = GENERATE(false, true);
  while (many && t.side.connection().opens().size() < FarOpens::kMostOpens)
    open_file(t.side.connection(), take_next(t.id), "f", {.file = t.next_file()});
  t.opens_and_reads("a");
  t.opens_and_reads("b");
  CHECK(t.side.sent.empty() == many);
}

}  // namespace
}  // namespace longhaul::smb::smb2::test
