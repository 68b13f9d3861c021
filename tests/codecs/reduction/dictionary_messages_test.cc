// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/dictionary_messages.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/codecs/hex.h"

using namespace longhaul;
using namespace longhaul::reduction;

namespace {

// The message as PROTOCOL.md has it, and back.
template <class T>
void pinned(const T& message, std::string_view expected) {
  Buffer written;
  write_message(message, written);
  CHECK(hex(written) == expected);
  Buffer whole = from_hex(expected);
  auto parsed = parse_message(whole);
  REQUIRE(parsed.has_value());
  REQUIRE(std::holds_alternative<T>(*parsed));
  Buffer again;
  write_message(std::get<T>(*parsed), again);
  CHECK(hex(again) == expected);
  // Nothing shorter is a message.
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("cut to " << size);
    auto cut = parse_message(Bytes(whole).first(size));
    if (!std::is_same_v<T, PlainBlock> && !std::is_same_v<T, Held>) CHECK_FALSE(cut.has_value());
  }
}

}  // namespace

TEST_CASE("dictionary messages match the bytes shown in PROTOCOL.md") {
  pinned(Hello{1, 0x0123456789abcdef, 256u << 20},
         "01"
         "01"
         "0123456789abcdef"
         "90000000");
  pinned(Welcome{1, 64u << 20},
         "02"
         "01"
         "84000000");
  Buffer print;
  write_message(Welcome{1, 64u << 20, 0x0123456789abcdef}, print);
  CHECK(hex(print) == "0201840000000123456789abcdef");
  CHECK(std::get<Welcome>(*parse_message(print)) == Welcome{1, 64u << 20, 0x0123456789abcdef});
  // What later versions add is skipped.
  print.push_back(std::byte{1});
  CHECK(std::get<Welcome>(*parse_message(print)) == Welcome{1, 64u << 20, 0x0123456789abcdef});
  pinned(Held{{{65'536, 131'072}, {131'172, 131'272}}},
         "03"
         "80010000"
         "80010000"
         "4064"
         "4064");
  pinned(Need{65'536, 1000, Need::Reason::mismatch},
         "04"
         "80010000"
         "43e8"
         "01");
  pinned(PlainBlock{65'536, as_bytes("abc")},
         "05"
         "80010000"
         "616263");
  pinned(Gone{65'536},
         "06"
         "80010000");
  pinned(Clear{}, "07");
  pinned(Floor{65'536},
         "08"
         "80010000");
}

TEST_CASE("impossible dictionary messages are refused") {
  for (const char* text : {
           "",
           "03",  // no range
           "0380010000"
           "00",  // an empty one
           "0380010000"
           "01"
           "0001",  // two that touch
           "03ffffffffffffffff"
           "01",  // beyond all offsets
           "0301"
           "ffffffffffffffff",
           "0480010000"
           "00"
           "00",  // no bytes
           "0480010000"
           "80010001"
           "00",  // more than a block has
           "0480010000"
           "01"
           "02",          // a reason that is none
           "0580010000",  // no bytes
           "068001000000",
           "0700",
       }) {
    INFO(text);
    CHECK_FALSE(parse_message(from_hex(text)).has_value());
  }
  Held many;
  for (std::uint64_t i = 0; i <= kMaxHeldRanges; ++i) many.ranges.push_back({1000 + 10 * i, 1005 + 10 * i});
  Buffer written;
  write_message(many, written);
  CHECK_FALSE(parse_message(written).has_value());
  // Later versions may say more at the beginning, and have other messages.
  CHECK(parse_message(from_hex("0101"
                               "0123456789abcdef"
                               "90000000"
                               "ff"))
            .has_value());
  Buffer unknown = from_hex("7f010203");
  auto other = parse_message(unknown);
  REQUIRE(other.has_value());
  CHECK(std::get<OtherMessage>(*other).body.size() == 3);
}
