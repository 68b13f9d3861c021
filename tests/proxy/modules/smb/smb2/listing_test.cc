// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/listing.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

TEST_CASE("a compound that opens a directory and lists it from its beginning is recognised") {
  const auto with = [](std::uint8_t info_class, std::uint8_t flags, std::uint32_t header) {
    const Slice create = create_request(1, "d").frame.bytes;
    const Slice query = build_query_directory_request(
        {}, {.info_class = info_class, .flags = flags, .file = kPreviousFile, .output_bytes = 99});
    const auto body = [](const Slice& frame) {
      return Body([&](auto& out) { out.bytes(frame.bytes().subspan(kFrameHeadBytes + kHeaderBytes)); });
    };
    return query_with_open(
        compound({{request_header(Command::create, 1), body(create)},
                  {request_header(Command::query_directory, 2, {.flags = header}), body(query)}}));
  };
  const auto query = with(file_info::names, 0, header_flags::related);
  REQUIRE(query);
  CHECK(query->info_class == file_info::names);
  CHECK(query->output_bytes == 99);
  CHECK_FALSE(with(file_info::names, 0, 0));
  CHECK_FALSE(with(99, 0, header_flags::related));
  CHECK_FALSE(with(file_info::names, query_directory_flags::index_specified, header_flags::related));
  CHECK_FALSE(query_with_open(create_request(1, "d")));
}
