// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/block_decoder.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "codecs/dedup/references.h"
#include "codecs/reduction/deflated.h"
#include "codecs/reduction/errors.h"
#include "codecs/zstd_stage.h"
#include "tests/codecs/hex.h"

using namespace longhaul;
using namespace longhaul::reduction;

namespace {

BlockDecoder greeted(std::uint64_t ring_bytes = 16u << 20) {
  BlockDecoder decoder(1u << 30);
  REQUIRE(decoder.on_hello({kVersion, 1, ring_bytes}));
  REQUIRE(decoder.poll_message());
  return decoder;
}

BlockHeader head_of(std::string_view plain, std::uint8_t codec, std::uint64_t ring_offset) {
  return {codec, static_cast<std::uint32_t>(plain.size()), BlockChecksum().of(as_bytes(plain)), ring_offset};
}

const std::string kPlain =
    "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog again.";

bool gives(BlockDecoder& decoder, std::uint64_t stream, const BlockHeader& header, Bytes encoded,
           std::string_view plain) {
  auto got = decoder.decode(stream, header, encoded);
  return got && *got && as_text((*got)->bytes()) == plain;
}

// Neither restored nor refused: the stream waits.
bool asks(BlockDecoder& decoder, std::uint64_t stream, const BlockHeader& header, Bytes encoded) {
  auto got = decoder.decode(stream, header, encoded);
  return got && !*got;
}

}  // namespace

TEST_CASE("a block whose checksum was made with another secret is not delivered") {
  std::array<std::byte, BlockChecksum::kSecretBytes> secret{};
  secret.fill(std::byte{0x5a});
  BlockDecoder decoder(1u << 30, BlockChecksum(secret));
  REQUIRE(decoder.on_hello({kVersion, 1, 16u << 20}));
  REQUIRE(decoder.poll_message());
  BlockHeader header = head_of(kPlain, kInRing, 65'536);
  CHECK(asks(decoder, 1, header, as_bytes(kPlain)));
  CHECK(decoder.counters().mismatches == 1);
  header.ring_offset += 1024;
  header.checksum = BlockChecksum(secret).of(as_bytes(kPlain));
  CHECK(gives(decoder, 3, header, as_bytes(kPlain), kPlain));
}

TEST_CASE("encoded blocks match the bytes shown in PROTOCOL.md") {
  BlockDecoder decoder = greeted();
  std::string first = "0123456789abcdefghijklmnopqrstuvwxyz";
  CHECK(hex(as_bytes(first)).size() == 72);
  CHECK(gives(decoder, 1, head_of(first, kInRing, 65'536), as_bytes(first), first));
  // One token: no literals before it, 36 bytes from 36 before; then two literals.
  std::string second = first + "!\n";
  Buffer references;
  dedup::encode_references(65'572, as_bytes(second), {{0, 36, 65'536}}, references);
  CHECK(hex(references) ==
        "03"
        "201c48"
        "210a");
  CHECK(gives(decoder, 1, head_of(second, kInRing | kReferences, 65'572), references, second));
  // A zstd frame without magic number, size and checksum, and one that has the block before for context;
  // another zstd may make others, but reads these.
  Buffer alone = from_hex(
      "0000e50100440354686520717569636b2062726f776e20666f78206a756d7073206f7665722074"
      "6865206c617a7920646f672e2020616761696e2e0100059aaa0c");
  CHECK(gives(decoder, 1, head_of(kPlain, kInRing | kZstd, 65'610), alone, kPlain));
  std::uint64_t at = 65'610 + kPlain.size();
  Buffer after = from_hex(
      "00405f"
      "0000950000482e2020616761696e2e0200406522d55441");
  CHECK(gives(decoder, 1, head_of(kPlain, kInRing | kZstd | kContext | kFollows, 0), after, kPlain));
  auto message = decoder.poll_message();
  REQUIRE(message.has_value());
  auto held = parse_message(message->bytes());
  CHECK(std::get<Held>(*held) == Held{{{65'536, at + kPlain.size()}}});
  // Two files of gzip, opened.
  Buffer files = from_hex(
      "1f8b08000000000002038d8bd115c22010c056c9003e7670872e70b408d87aa740c53a7d794ee04f7e924c29f0daf3bc"
      "e28b75e5661feefbe359b17728b4a137f91e2c161dd3ff311225abe3aa0bb9e1a5ac7570acd27ee1782ff494e744ae6c"
      "a691681af0076add9d168d8001980000001f8b08000000000002039d8cc115403010055bf9057829420d1ad8102bc42e"
      "0922aae7393bb9cc6966ea02d18c6d705877df4eb051b3a0d7133e21a83058c55520e960294ee9e1a3d1f63681ae824e"
      "d9a0f9388cfbbc24e8e1e27f19c4e4c5dc43fe79cea8000000");
  Buffer opened = from_hex(
      "417100006505001249222990391dfffff3bbf33e38ec43b951e9a9496b65b1e4efddbda49535b2eedb67242eb42fd50e"
      "010d2119bbdb61b6cc22aa7c47b1bb1ca072393c59d76ff0b1b6bcac4ddda29f109dd91dada58b3f410c6f4d15c35ff4"
      "514dfca99425ff8fece81b85a9c779bd8a93be1581608f6b2dbd665dc14f10c5248f932108ecc082681aaf7b86c6f1b8"
      "4728040b00b1db094ada09e64894082e6806e1ab039e76df7af8c882e00e5456ae000c");
  CHECK(
      gives(decoder, 2, head_of(as_text(files), kInRing | kZstd | kOpened, 66'000), opened, as_text(files)));
  Buffer content;
  REQUIRE(open_deflated(files, content));
  CHECK(hex(Bytes(content).first(13)) == "0c0a4098405f091240a8405609");
  // The bit means nothing without the others, and no content is so long.
  auto refused = [&](unsigned codec, std::uint64_t offset, Bytes encoded) {
    return !decoder.decode(3, head_of(as_text(files), static_cast<std::uint8_t>(codec), offset), encoded)
                .has_value();
  };
  CHECK(refused(kInRing | kOpened, 67'000, opened));
  CHECK(refused(kZstd | kOpened, 0, opened));
  Buffer longer = from_hex("80040001");
  append(longer, Bytes(opened).subspan(2));
  CHECK(refused(kInRing | kZstd | kOpened, 67'000, longer));
  // A length that is not that of what is in the frame: something went wrong on the way.
  longer[3] = std::byte{0};
  CHECK(asks(decoder, 3, head_of(as_text(files), kInRing | kZstd | kOpened, 67'000), longer));
}

TEST_CASE("impossible blocks are refused at once") {
  BlockDecoder decoder = greeted(), stranger(16u << 20);
  auto refused = [&](const BlockHeader& header, Bytes encoded) {
    auto got = decoder.decode(1, header, encoded);
    return !got && !decoder.poll_ready();
  };
  BlockHeader good = head_of(kPlain, kInRing, 65'536);
  auto with = [&](auto change) {
    BlockHeader header = good;
    change(header);
    return header;
  };
  Bytes plain = as_bytes(kPlain);
  CHECK_FALSE(stranger.decode(1, good, plain).has_value());  // no HELLO was received
  CHECK(refused(with([](auto& h) { h.codec = 0x41; }), plain));
  CHECK(refused(with([](auto& h) { h.codec |= kFollows; }), plain));  // nothing to follow
  CHECK(refused(with([](auto& h) { h.codec = kFollows, h.ring_offset = 0; }), plain));
  CHECK(refused(with([](auto& h) { h.codec = kReferences; }), plain));
  CHECK(refused(with([](auto& h) { h.codec = kInRing | kContext; }), plain));
  CHECK(refused(with([](auto& h) { h.codec = kInRing | kLoads; }), plain));
  CHECK(refused(with([](auto& h) { h.codec = 0; }), plain));
  CHECK(refused(with([](auto& h) { h.codec = 0, h.ring_offset = 0, h.checksum ^= 1; }), plain));
  CHECK(refused(with([](auto& h) { h.ring_offset = 65'535; }), plain));
  CHECK(refused(with([](auto& h) { h.ring_offset = kMaxVarint; }), plain));
  CHECK(refused(with([](auto& h) { h.plain_bytes = 0; }), plain));
  CHECK(refused(with([](auto& h) { h.plain_bytes = 65'537; }), plain));
  CHECK(refused(with([](auto& h) { h.plain_bytes -= 1; }), plain));
  CHECK(refused(with([](auto& h) { h.codec |= kZstd; }), {}));
  CHECK(refused(with([](auto& h) { h.codec |= kZstd; }), plain));  // not smaller than what it is to become
  // Context before the first byte of the ring, of no bytes, of too many.
  auto context = [](std::string_view fields) {
    Buffer encoded = from_hex(fields);
    append(encoded, as_bytes("12345678"));
    return encoded;
  };
  auto zstd = with([](auto& h) { h.codec |= kZstd | kContext, h.ring_offset = 65'636; });
  CHECK(refused(zstd, context("00"
                              "4065")));
  CHECK(refused(zstd, context("4065"
                              "01")));
  CHECK(refused(zstd, context("00"
                              "00")));
  CHECK(refused(with([](auto& h) { h.codec |= kZstd | kContext, h.ring_offset = 1u << 30; }),
                context("00"
                        "80100001")));
  // Content longer than the block.
  auto both = with([](auto& h) { h.codec |= kZstd | kReferences; });
  CHECK(refused(both, context("4060")));
  CHECK(refused(both, context("00")));
  CHECK(decoder.counters().failed > 15);
  CHECK(decoder.counters().needs == 0);
}

TEST_CASE("a zstd frame that expands beyond its block is cut off") {
  BlockDecoder decoder = greeted();
  std::string zeros(1'000'000, '\0');
  Buffer bomb;
  REQUIRE(zstd_compress({.level = 3}, {}, as_bytes(zeros), bomb));
  std::string small(1000, '\0');
  CHECK(asks(decoder, 1, head_of(small, kInRing | kZstd, 65'536), bomb));
  CHECK(asks(decoder, 3, head_of(small, kInRing | kZstd, 1u << 20), as_bytes("no frame at all")));
  // Without a place in the history there is nothing to ask for.
  CHECK_FALSE(decoder.decode(5, head_of(small, kZstd, 0), bomb).has_value());
}

TEST_CASE("blocks with missing references are requested again") {
  BlockDecoder decoder = greeted();
  REQUIRE(gives(decoder, 1, head_of(kPlain, kInRing, 65'536), as_bytes(kPlain), kPlain));
  std::uint64_t at = 65'536 + kPlain.size();
  Buffer references;
  dedup::encode_references(at, as_bytes(kPlain), {{0, 90, 65'536}}, references);
  std::uint64_t far = at + (16u << 20);  // by then the first block has left the ring
  CHECK(asks(decoder, 1, head_of(kPlain, kInRing | kReferences, far + 40'000'000), references));
  auto need = parse_message(decoder.poll_message()->bytes());
  CHECK(std::get<Need>(*need) ==
        Need{far + 40'000'000, static_cast<std::uint32_t>(kPlain.size()), Need::Reason::unreachable});
  // Not answered yet, answered with other bytes, answered.
  BlockHeader header = head_of(kPlain, kInRing | kReferences, far + 40'000'000);
  CHECK(asks(decoder, 1, header, references));
  CHECK_FALSE(decoder.poll_ready().has_value());
  REQUIRE(decoder.on_plain({header.ring_offset + 1, as_bytes(kPlain)}));
  CHECK_FALSE(decoder.poll_ready().has_value());
  REQUIRE(decoder.on_plain({header.ring_offset, as_bytes(kPlain)}));
  REQUIRE(decoder.poll_ready() == 1);
  CHECK(gives(decoder, 1, header, references, kPlain));

  header.ring_offset += 1000;
  CHECK(asks(decoder, 1, header, references));
  std::string other = kPlain;
  other[5] ^= 1;
  REQUIRE(decoder.on_plain({header.ring_offset, as_bytes(other)}));
  REQUIRE(decoder.poll_ready() == 1);
  CHECK(decoder.decode(1, header, references).error() == Error::not_restorable);

  header.ring_offset += 1000;
  CHECK(asks(decoder, 1, header, references));
  // Two streams cannot wait for one place, and a forgotten one waits for nothing.
  CHECK_FALSE(decoder.decode(3, header, references).has_value());
  decoder.forget(1);
  REQUIRE(decoder.on_gone({header.ring_offset}));
  CHECK_FALSE(decoder.poll_ready().has_value());
}

TEST_CASE("a block's position follows from the end of the previous block of its stream") {
  BlockDecoder decoder = greeted();
  Bytes plain = as_bytes(kPlain);
  REQUIRE(gives(decoder, 1, head_of(kPlain, kInRing, 70'000), plain, kPlain));
  REQUIRE(gives(decoder, 3, head_of(kPlain, kInRing, 80'000), plain, kPlain));
  REQUIRE(gives(decoder, 1, head_of(kPlain, kInRing | kFollows, 5), plain, kPlain));
  REQUIRE(gives(decoder, 3, head_of(kPlain, kInRing | kFollows, 0), plain, kPlain));
  std::uint64_t size = kPlain.size();
  auto held = parse_message(decoder.poll_message()->bytes());
  CHECK(std::get<Held>(*held) ==
        Held{{{70'000, 70'000 + size}, {70'005 + size, 70'005 + 2 * size}, {80'000, 80'000 + 2 * size}}});
  CHECK_FALSE(decoder.decode(3, head_of(kPlain, kInRing | kFollows, kMaxVarint), plain).has_value());
  decoder.forget(1);
  CHECK_FALSE(decoder.decode(1, head_of(kPlain, kInRing | kFollows, 0), plain).has_value());
}

TEST_CASE("a late block is delivered and does not overwrite newer history") {
  BlockDecoder decoder = greeted();
  std::string old(1000, 'o'), young(1000, 'y');
  REQUIRE(gives(decoder, 1, head_of(young, kInRing, 65'536 + (16u << 20)), as_bytes(young), young));
  REQUIRE(gives(decoder, 3, head_of(old, kInRing, 65'536), as_bytes(old), old));
  CHECK(as_text(decoder.ring()->read(65'536 + (16u << 20), 1000)) == young);
  auto held = parse_message(decoder.poll_message()->bytes());
  CHECK(std::get<Held>(*held).ranges.size() == 1);
}

TEST_CASE("a second HELLO is an error, and a HELLO with an impossible size gets no ring") {
  BlockDecoder decoder = greeted();
  CHECK_FALSE(decoder.on_hello({kVersion, 1, 16u << 20}).has_value());
  for (Hello hello : {Hello{2, 1, 64u << 20}, Hello{1, 1, 1000}, Hello{1, 1, 0}}) {
    BlockDecoder other(1u << 30);
    REQUIRE(other.on_hello(hello));
    auto welcome = parse_message(other.poll_message()->bytes());
    CHECK(std::get<Welcome>(*welcome).ring_bytes == 0);
  }
  BlockDecoder large(64u << 20);
  REQUIRE(large.on_hello({1, 1, kMaxVarint}));
  CHECK(large.counters().ring_bytes == 64u << 20);
}

TEST_CASE("a peer that leaves gaps is sent a bounded list of ranges, and its data is still restored") {
  BlockDecoder decoder = greeted();
  // From behind, so that each stands before all others.
  constexpr std::uint64_t kBlocks = 70'000;
  for (std::uint64_t i = kBlocks; i > 0; --i)
    REQUIRE(gives(decoder, 1, head_of("x", kInRing, 65'536 + 3 * i), as_bytes("x"), "x"));
  std::size_t messages = 0;
  while (decoder.poll_message()) ++messages;
  CHECK(messages == 65'536 / kMaxHeldRanges);
}

TEST_CASE("requests for ended streams expire") {
  BlockDecoder decoder = greeted();
  const std::string other = "never was";
  for (std::uint64_t stream = 1; stream <= 10'000; ++stream) {
    BlockHeader header = head_of(other, kInRing, 65'536 + 100 * stream);
    REQUIRE(asks(decoder, stream, header, as_bytes("not these")));
    decoder.forget(stream);
  }
  std::size_t messages = 0;
  while (decoder.poll_message()) ++messages;
  CHECK(messages < 100);
}
