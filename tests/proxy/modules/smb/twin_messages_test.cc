// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/twin_messages.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/twin/numbers.h"

using namespace longhaul;
using namespace longhaul::smb;

namespace {

OpenKey key_of(unsigned n) {
  OpenKey key{.session = 0x4000'0000'0000'0000ull + n, .tree = n};
  key.id[0] = std::byte(n);
  key.id[15] = std::byte(n + 1);
  return key;
}

std::vector<TwinMessage> one_of_each() {
  OpenKey short_key{.session = 1, .tree = 2};
  short_key.id[1] = std::byte{7};
  return {
      Ahead{key_of(1), {3, 4}, 1ull << 41, 65536, 1ull << 62},
      Ahead{short_key, {0, 0}, 0, 0, std::nullopt},
      Used{key_of(2), 5, 6, MessageNumber{~0ull}, 8, 9},
      Asked{key_of(3), {1, 2}, 3_number, 4, 5, 6},
      Forwarded{MessageNumber{~0ull - 1}},
      Drop{key_of(4), 0xFFFFFFFF},
      Promised{key_of(5), 12_number},
      Kept{13_number, 0xC000007F, 14, 15},
      Room{1, 2, 3, 4},
      Held{key_of(6), 9},
      Break{key_of(7), 1},
      Broken{key_of(8)},
      Answer{key_of(9), 16, 0, Slice::copy_of(as_bytes("asked")), 17},
      Expect{18_number, 19, Slice::copy_of(as_bytes("what"))},
      Enumerate{key_of(10), 20_number, true, 21, 37, Slice::copy_of(as_bytes("*"))},
      More{key_of(11), 20},
      Local{21_number, 22},
      Offer{23, key_of(12), Slice::copy_of(as_bytes("asked")), Slice::copy_of(as_bytes("questions")), 24},
      Revoke{25},
      Took{26},
      GaveUp{~0ull},
      MakeReal{key_of(12), Slice::copy_of(as_bytes("create"))},
      Allowance{1ull << 62},
      Remembers{~0ull, 27},
      Settled{key_of(13)},
      Watched{key_of(14), true},
      Paths{25, true},
      Marked{key_of(15), 0xFFFFFFFF},
      SealOffered{},
      SealKeys{~0ull, 0x0311, 2, 4, true, Slice::copy_of(as_bytes("signs")), Slice::copy_of(as_bytes("up")),
               Slice::copy_of(as_bytes("down")), Slice::copy_of(as_bytes("detail"))},
      Unsealed{Slice::copy_of(as_bytes("smb_ticket"))},
      LoginRefused{Slice::copy_of(as_bytes("smb_clock"))},
      LossRead{28_number}};
}

}  // namespace

TEST_CASE("a message between the halves is decoded as it was encoded") {
  for (const TwinMessage& message : one_of_each()) {
    Slice encoded = encode(message);
    auto decoded = decode(encoded.bytes());
    REQUIRE(decoded.has_value());
    CHECK(decoded->index() == message.index());
    CHECK(attached_bytes(*decoded) == attached_bytes(message));
    Slice again = encode(*decoded);
    CHECK(as_text(again.bytes()) == as_text(encoded.bytes()));
  }
  auto used = std::get<Used>(*decode(encode(one_of_each()[2]).bytes()));
  CHECK(used.open == key_of(2));
  CHECK(used.message == MessageNumber{~0ull});
  CHECK(used.seen == 9);
}

TEST_CASE("a message from the other half that is truncated, too long or unknown is an error") {
  for (const TwinMessage& message : one_of_each()) {
    Slice encoded = encode(message);
    for (std::size_t size = 0; size < encoded.size(); ++size)
      CHECK_FALSE(decode(encoded.bytes().first(size)).has_value());
    Buffer longer;
    append(longer, encoded.bytes());
    longer.push_back(std::byte{0});
    CHECK_FALSE(decode(longer).has_value());
  }
  CHECK_FALSE(decode(as_bytes("\x7f")).has_value());
  CHECK_FALSE(decode(encode(Ahead{key_of(1), {}, 0, kMaxAttachedBytes + 1, {}}).bytes()).has_value());
}

TEST_CASE("keys are encoded like other messages, in memory that is wiped") {
  const SealKeys keys{.session = 0x1234'5678,
                      .dialect = 0x0302,
                      .must_sign = true,
                      .signing_key = Slice::copy_of(as_bytes("signs")),
                      .to_client = Slice::copy_of(Buffer(200, std::byte{7}))};
  const Slice encoded = encode(keys), as_others = twin::encode(TwinMessage(keys));
  CHECK(as_text(encoded.bytes()) == as_text(as_others.bytes()));
}
