// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/file_position.h"

#include <catch2/catch.hpp>

#include "codecs/little_endian.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

Pending about(Command command, std::uint8_t info_class, InfoType type = InfoType::file) {
  Pending request;
  request.command = command;
  request.info_type = type;
  request.info_class = info_class;
  return request;
}
// Where the response to such a query has the position; nullopt: it is not corrected.
std::optional<std::uint64_t> shown(const FilePosition& position, std::uint8_t info_class, std::size_t at,
                                   InfoType type = InfoType::file) {
  const auto corrected = position.corrected(about(Command::query_info, info_class, type), Buffer(100));
  if (!corrected) return std::nullopt;
  CHECK(corrected->size() == 100);
  return load_le<std::uint64_t>(corrected->bytes(), at);
}
void follow(FilePosition& position, Command command, const test::Body& body, std::uint8_t info_class = 0) {
  const Slice frame = build_message(test::request_header(command, 1), body.bytes);
  position.follow(test::message_of(frame), about(command, info_class));
}

}  // namespace

TEST_CASE("a position is in both classes that have one, and in no others") {
  FilePosition position;
  CHECK_FALSE(shown(position, file_info::position, 0));
  position.set(7);
  CHECK(shown(position, file_info::position, 0) == 7);
  CHECK(shown(position, file_info::all, 80) == 7);
  CHECK_FALSE(shown(position, file_info::standard, 0));
  CHECK_FALSE(shown(position, file_info::position, 0, InfoType::file_system));
}

TEST_CASE("a response that ends before the position is not corrected") {
  FilePosition position;
  position.set(7);
  const Pending query = about(Command::query_info, file_info::all);
  CHECK_FALSE(position.corrected(query, Buffer(87)));
  CHECK(position.corrected(query, Buffer(88)));
}

TEST_CASE("a client that sets the position knows it; after a WRITE only the server does") {
  FilePosition position;
  position.set(7);
  follow(position, Command::set_info, test::set_info_request_body({}, file_info::basic), file_info::basic);
  CHECK(shown(position, file_info::position, 0) == 7);
  follow(position, Command::set_info, test::set_info_request_body({}, file_info::position),
         file_info::position);
  CHECK(shown(position, file_info::position, 0) == 0);  // as in the request
  follow(position, Command::write, test::write_request_body({}, 0, "x"));
  CHECK_FALSE(shown(position, file_info::position, 0));
}
