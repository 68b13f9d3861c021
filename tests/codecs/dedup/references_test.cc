// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/references.h"

#include "codecs/dedup/twins.h"
#include "tests/codecs/hex.h"

using namespace longhaul;
using namespace longhaul::dedup;

namespace {

Buffer of(std::initializer_list<int> values) {
  Buffer bytes;
  for (const int v : values) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}

}  // namespace

TEST_CASE("encoded references match section 14 of the protocol") {
  const std::string plain = "AB" + std::string(40, 'c') + "D" + std::string(8, 'e') + std::string(300, 'f');
  // The first 1,000 back; then, past one literal, the same distance; 31 literals and more; a distance less
  // by 3.
  const std::vector<Copy> copies{{2, 40, 100'000 - 998}, {43, 8, 100'043 - 1'000}, {100, 251, 100'100 - 997}};
  Buffer out;
  encode_references(100'000, as_bytes(plain), copies, out);
  CHECK(hex(out) ==
        "0b"
        "422007d0"
        "0100"
        "3f1240f305" +
            hex(as_bytes("ABD" + std::string(49, 'f'))));
  std::vector<Copy> parsed;
  const auto literals = parse_references(out, 100'000, plain.size(), parsed);
  REQUIRE(literals.has_value());
  CHECK(parsed == copies);
  CHECK(as_text(*literals) == "ABD" + std::string(49, 'f'));
}

TEST_CASE("any set of copies is decoded as it was encoded") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::uint64_t offset = kRingStart + random() % (std::uint64_t{1} << (10 + random() % 28));
    const std::string plain = random_bytes(random, 1 + random() % (seed % 3 ? 300 : kRingStep));
    std::vector<Copy> copies;
    for (std::size_t at = 0; random() % 30 != 0;) {
      at += random() % 2 ? random() % 40 : random() % 2'000;
      if (at + kMinCopy > plain.size()) break;
      const std::size_t most = std::min<std::size_t>(plain.size() - at, random() % 2 ? 100 : 40'000);
      if (most < kMinCopy) break;
      const std::size_t length = kMinCopy + random() % (most - kMinCopy + 1);
      const std::uint64_t distance =
          copies.empty() || random() % 2
              ? 1 + random() % (offset - 1)
              : offset + copies.back().position - copies.back().source + random() % 100;
      if (distance < at + length || distance > offset) break;
      copies.push_back(
          {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length), offset + at - distance});
      at += length;
    }
    Buffer out = of({1, 2, 3});
    encode_references(offset, as_bytes(plain), copies, out);
    std::vector<Copy> parsed;
    REQUIRE(parse_references(Bytes(out).subspan(3), offset, plain.size(), parsed).has_value());
    REQUIRE(parsed == copies);
    // Cut anywhere it is malformed; so it is for another size, or with a byte too many.
    const std::size_t cut = 3 + random() % (out.size() - 3);
    CHECK(parse_references(Bytes(out).subspan(3, cut - 3), offset, plain.size(), parsed).has_error());
    CHECK(parse_references(Bytes(out).subspan(3), offset, plain.size() + 1, parsed).has_error());
    CHECK(parse_references(Bytes(out).subspan(3), offset, plain.size() - 1, parsed).has_error());
    out.push_back(std::byte{});
    CHECK(parse_references(Bytes(out).subspan(3), offset, plain.size(), parsed).has_error());
  }
}

TEST_CASE("references that no encoder writes are refused") {
  const std::uint64_t offset = kRingStart + 100;
  std::vector<Copy> copies;
  const auto refused = [&](std::initializer_list<int> encoded, std::size_t plain) {
    const auto result = parse_references(of(encoded), offset, plain, copies);
    return !result && result.error() == ReferenceError::malformed;
  };
  CHECK_FALSE(refused({3, 0x20, 0, 20}, 8));                      // distance 10, eight bytes: right
  CHECK(refused({}, 8));                                          // nothing at all
  CHECK(refused({3, 0x20, 0}, 8));                                // cut
  CHECK(refused({2, 0x20, 0}, 8));                                // a token cut
  CHECK(refused({3, 0x20, 0, 14}, 8));                            // distance 7: into itself
  CHECK(refused({3, 0x20, 0, 0}, 8));                             // distance 0
  CHECK(refused({3, 0x20, 0, 1}, 8));                             // a negative one
  CHECK(refused({3, 0x20, 1, 20}, 8));                            // past the block's end
  CHECK(refused({3, 0x21, 0, 20}, 8));                            // a literal that there is no room for
  CHECK(refused({7, 0xa0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe}, 8));  // before the beginning of time
  CHECK(refused({4, 0xc0, 0, 20, 20}, 8));                        // six bytes of distance
  CHECK(refused({11, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 20}, 8));  // many literals
  CHECK(refused({10, 0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 20}, 8));     // a great length
  CHECK(refused({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 8));                   // many tokens
}

TEST_CASE("a block that refers to missing history is not written") {
  auto ring = HistoryRing::make(2 * kRingStep).value();
  const std::string plain(100, 'p');
  ring.reserve(kRingStart, 1000);
  const std::uint64_t offset = kRingStart + 1000;
  Buffer out;
  for (const std::uint64_t source : {kRingStart - 1, std::uint64_t{1}}) {
    out.clear();
    encode_references(offset, as_bytes(plain), {{0, 50, kRingStart}, {50, 50, source}}, out);
    std::string target(100, '-');
    const auto result =
        decode_references(ring, out, offset, std::as_writable_bytes(std::span(target.data(), target.size())));
    REQUIRE(result.has_error());
    CHECK(result.error() == ReferenceError::not_held);
    CHECK(target == std::string(100, '-'));
  }
}
