// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/twin/codec.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::twin {
namespace {

struct Plain {
  std::uint64_t number = 0;
  std::uint16_t small = 0;
  bool flag = false;
  static constexpr std::tuple kFields{&Plain::number, &Plain::small, &Plain::flag};
};
struct Attaching {
  OpenKey open;
  std::optional<std::uint64_t> end;
  Slice text;
  std::uint32_t bytes = 0;
  std::uint32_t attached_bytes() const { return bytes; }
  static constexpr std::tuple kFields{&Attaching::open, &Attaching::end, &Attaching::text, &Attaching::bytes};
};
struct Numbered {
  MessageNumber request;
  static constexpr std::tuple kFields{&Numbered::request};
};
using Messages = std::variant<Plain, Attaching, Numbered>;

std::string hex(const Slice& slice) {
  std::string text;
  for (const std::byte byte : slice.bytes()) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

Attaching attaching() {
  Attaching message{.open = {.session = 300, .tree = 2}, .end = 5, .text = Slice::copy_of(as_bytes("hi"))};
  message.open.id[0] = std::byte{9};
  message.bytes = 7;
  return message;
}

}  // namespace

TEST_CASE("a message is its place in the variant and its fields, numbers in seven bits a byte") {
  CHECK(hex(encode(Messages(Plain{300, 2, true}))) == "01ac020201");
  CHECK(hex(encode(Messages(attaching()))) == "02ac02020109010502686907");
}

TEST_CASE("a request's number is in a message like any other number, up to the largest") {
  CHECK(hex(encode(Messages(Numbered{300_number}))) == "03ac02");
  const MessageNumber largest{~0ull};
  const Slice encoded = encode(Messages(Numbered{largest}));
  CHECK(hex(encoded) == "03ffffffffffffffffff01");
  CHECK(std::get<Numbered>(*decode<Messages>(encoded.bytes())).request == largest);
}

// The client chooses it: a table of them that does not use KeyedHash is not compiled.
static_assert(!std::is_default_constructible_v<std::hash<MessageNumber>>);
static_assert(std::is_default_constructible_v<KeyedMap<MessageNumber, int>>);

TEST_CASE("a message comes back as it was written") {
  const auto read = decode<Messages>(encode(Messages(attaching())).bytes());
  REQUIRE(read.has_value());
  const auto& message = std::get<Attaching>(*read);
  CHECK((message.open == attaching().open));
  CHECK(message.end == 5);
  CHECK(as_text(message.text.bytes()) == "hi");
  CHECK(attached_bytes(*read) == 7);
  CHECK(attached_bytes(Messages(Plain{})) == 0);
}

TEST_CASE("messages that are cut, too long, of another type or with too large a field are errors") {
  const Slice whole = encode(Messages(attaching()));
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(decode<Messages>(whole.bytes().first(size)).has_value());
  Buffer longer(whole.bytes().begin(), whole.bytes().end());
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode<Messages>(longer).has_value());
  longer = {std::byte{4}};
  CHECK(decode<Messages>(longer).error() == MessageError::unknown_message);
  // 65536 does not fit 16 bits.
  longer = {std::byte{1}, std::byte{0}, std::byte{0x80}, std::byte{0x80}, std::byte{4}, std::byte{0}};
  CHECK(decode<Messages>(longer).error() == MessageError::malformed_message);
  Attaching large = attaching();
  large.bytes = kMaxAttachedBytes + 1;
  CHECK_FALSE(decode<Messages>(encode(Messages(large)).bytes()).has_value());
}

}  // namespace longhaul::twin
