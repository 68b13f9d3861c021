// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/look.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/question.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

constexpr Of kRelated{.flags = header_flags::related};

Body create_body(std::string_view name, std::uint32_t access = access::read_attributes) {
  CreateRequest create;
  create.desired_access = access;
  create.disposition = Disposition::open;
  const Slice made = create_request(0, name, create).frame.bytes;
  return Body([&](auto& out) { out.bytes(made.bytes().subspan(kFrameHeadBytes + kHeaderBytes)); });
}
Body close_body(std::uint16_t flags = 0) {
  return Body([&](auto& out) { out.u16(24), out.u16(flags), out.u32(0), put(out, kPreviousFile); });
}

// As Linux sends it, but for one property.
struct Parts {
  Header create = request_header(Command::create, 10);
  Body create_body = ::create_body("dir\\file");
  Header query = request_header(Command::query_info, 11, kRelated);
  Body query_body = query_info_request_body(kPreviousFile, file_info::all);
  Header close = request_header(Command::close, 12, kRelated);
  Body close_body = ::close_body();
  Message message() const {
    return compound({{create, create_body}, {query, query_body}, {close, close_body}});
  }
};

}  // namespace

TEST_CASE("a compound that opens, queries and closes a file is a look") {
  const auto look = look_in(Parts{}.message());
  REQUIRE(look);
  CHECK(look->is_look());
  CHECK(look->name == utf16("dir\\file"));
  const auto questions = questions_in(as_bytes(*look->queries));
  REQUIRE(questions.size() == 1);
  CHECK(request_of(questions.front().bytes())->info_class == file_info::all);
  CHECK(decode_plain_open(encode(*look).bytes()) == look);

  Parts other;
  other.create_body = create_body("dir\\other");
  CHECK(look_in(other.message())->is_like(*look));
  other.query_body = query_info_request_body(kPreviousFile, file_info::basic);
  CHECK_FALSE(look_in(other.message())->is_like(*look));

  // Session and tree may be named by each element, or only by the first.
  Parts inherited;
  inherited.query.session_id = inherited.close.session_id = ~SessionId{0};
  inherited.query.tree_id = inherited.close.tree_id = ~TreeId{0};
  CHECK(look_in(inherited.message()) == look);

  const auto bare =
      look_in(compound({{Parts{}.create, create_body("dir\\file")}, {Parts{}.close, close_body()}}));
  REQUIRE(bare);
  CHECK(bare->is_look());
  CHECK_FALSE(bare->is_like(*look));
}

TEST_CASE("compounds with more than a look in them are none") {
  Parts parts;
  SECTION("reads") { parts.create_body = create_body("dir\\file", access::read_data); }
  SECTION("may write attributes") {
    parts.create_body = create_body("dir\\file", access::read_attributes | access::write_attributes);
  }
  SECTION("a stream") { parts.create_body = create_body("dir\\file:stream"); }
  SECTION("position, which belongs to the handle") {
    parts.query_body = query_info_request_body(kPreviousFile, file_info::position);
  }
  SECTION("another file") { parts.query_body = query_info_request_body({1, 2}, file_info::all); }
  SECTION("another session") { parts.query.session_id = kSession + 1; }
  SECTION("another share") { parts.close.tree_id = kTree + 1; }
  SECTION("unrelated") { parts.query.flags = 0; }
  SECTION("signed") { parts.create.flags = header_flags::is_signed; }
  SECTION("several ids") { parts.query.credit_charge = 2; }
  SECTION("not closed") { parts.close.command = Command::flush; }
  CHECK_FALSE(look_in(parts.message()));
}

TEST_CASE("a look that is too long is none") {
  const Parts parts;
  CHECK_FALSE(look_in(compound({{parts.create, parts.create_body}})));
  CHECK_FALSE(look_in(compound({{parts.create, parts.create_body},
                                {parts.query, parts.query_body},
                                {parts.query, parts.query_body},
                                {parts.query, parts.query_body},
                                {parts.query, parts.query_body},
                                {parts.query, parts.query_body},
                                {parts.close, parts.close_body}})));
}

TEST_CASE("the response to a look is what the server would have sent for the client's own open") {
  Parts parts;
  parts.close_body = close_body(kClosePostQueryAttributes);
  parts.query.session_id = ~SessionId{0};
  Buffer all(104);
  store_le(all.data() + 40, std::uint64_t{77});
  store_le(all.data() + 76, std::uint32_t{access::read_attributes | access::read_data});
  const Body created =
      create_answer_body({.file = {3, 4}, .end_of_file = 77, .attributes = 0x20, .written = 5});
  const Message message = message_of(response_to_look(parts.message(), created.bytes, {Slice::copy_of(all)}));
  REQUIRE(message.elements.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Header& header = message.elements[i].header;
    CHECK(header.message_id == AnyId(10 + i).id);
    CHECK(header.status == Status::success);
    CHECK(header.session_id == kSession);
    CHECK(header.tree_id == kTree);
    CHECK(header.credits == 1);
    CHECK(header.is_related() == (i > 0));
    CHECK(header.is_response());
  }
  CHECK(parse_create_response(message.elements[0].bytes)->end_of_file == 77);
  const auto answered = parse_buffer_response(message.elements[1].bytes);
  REQUIRE(answered.has_value());
  REQUIRE(answered->buffer.size() >= all.size());
  CHECK(load_le<std::uint64_t>(answered->buffer, 40) == 77);
  CHECK(load_le<std::uint32_t>(answered->buffer, 76) == access::read_attributes);
  const auto closed = parse_close_response(message.elements[2].bytes);
  REQUIRE(closed.has_value());
  CHECK(closed->flags == kClosePostQueryAttributes);
  CHECK(closed->end_of_file == 77);
  CHECK(closed->times.last_write == 5);
  CHECK(closed->file_attributes == 0x20);

  parts.close_body = close_body();
  const Message plain = message_of(response_to_look(parts.message(), created.bytes, {Slice::copy_of(all)}));
  CHECK(parse_close_response(plain.elements[2].bytes)->end_of_file == 0);
}
