// SPDX-License-Identifier: Apache-2.0
#include "cache/sealed_file.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "cache/error.h"
#include "tests/cache/keys.h"
#include "tests/proxy/temporary_folder.h"

namespace longhaul::cache {
namespace {

using test::known_key;
using test::known_salt;

constexpr std::string_view kTestMagic("LHTEST\0\1", 8);
constexpr std::uint32_t kTestFirstPiece = 3;
const std::string kSealedOwner = "what it belongs to", kSealedHeader = "a header's text";

// One file with a header and content in parts of any size.
struct SealedOnDisk {
  TemporaryFolder folder;
  std::string path = (folder.path() / "file").string();
  Salt salt = known_salt();
  std::string content, seen;
  std::size_t calls = 0;

  explicit SealedOnDisk(std::size_t size, unsigned seed = 1) {
    std::mt19937 random(seed);
    content.resize(size);
    for (char& c : content) c = static_cast<char>(random());
    std::vector<Slice> parts;
    for (std::size_t at = 0; at < size;) {
      const std::size_t part = random() % 4 == 0 ? 0 : 1 + random() % 100'000;
      const std::string text = content.substr(at, part);
      parts.push_back(Slice::copy_of(as_bytes(text)));
      at += text.size();
    }
    SealedFile file(known_key(), kTestMagic, salt);
    Buffer out;
    REQUIRE(file.header(as_bytes(kSealedHeader), as_bytes(kSealedOwner), out));
    CHECK(out.size() == sealed_header_bytes(kSealedHeader.size()));
    SealedFile::Content pieces(file, kTestFirstPiece, as_bytes(kSealedOwner), parts);
    for (; !pieces.is_done(); ++calls)
      REQUIRE(pieces.next(out, [&](Bytes bytes) { seen += as_text(bytes); }));
    CHECK(out.size() == sealed_header_bytes(kSealedHeader.size()) + sealed_content_bytes(size));
    save(std::string(as_text(out)));
  }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  void save(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
  // The header's text; nothing if it cannot be read.
  std::string header(unsigned key = 0x40, std::string_view magic = kTestMagic,
                     const std::string& bound = kSealedOwner) {
    std::string text(kSealedHeader.size(), '\0');
    Salt found{};
    const auto opened = open_header(system_files(), path, known_key(key), magic, as_bytes(bound),
                                    std::as_writable_bytes(std::span(text)), found);
    if (opened) CHECK(found == salt);
    return opened ? text : "";
  }
  // So many pieces from this one on; nothing if they cannot be read.
  std::optional<std::string> pieces(std::size_t first, std::size_t size,
                                    const std::string& bound = kSealedOwner) {
    OpenedPieces opened(size);
    std::vector<MutableBytes> into;
    opened.add_to(into);
    const auto at = sealed_header_bytes(kSealedHeader.size()) + first * (kAeadTagBytes + kPieceBytes);
    if (!system_files().read(path, at, into)) return std::nullopt;
    const auto cipher = known_key().cipher(kTestMagic, salt, Aead::Use::open);
    if (!opened.open(*cipher, static_cast<std::uint32_t>(kTestFirstPiece + first), as_bytes(bound)))
      return std::nullopt;
    return std::string(as_text(opened.take().bytes()));
  }
};

TEST_CASE("sealed file: header and content are read as they were written, however the content was cut") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kPieceBytes - 1, kPieceBytes,
                                 kPieceBytes + 1, 4 * kPieceBytes, 9 * kPieceBytes + 77}) {
    CAPTURE(size);
    SealedOnDisk one(size, static_cast<unsigned>(size));
    CHECK((one.seen == one.content));
    CHECK(one.calls == (pieces_of(size) + 3) / 4);
    CHECK(one.header() == kSealedHeader);
    CHECK((one.pieces(0, size) == one.content));
  }
}

TEST_CASE("sealed file: any range of pieces can be read alone") {
  SealedOnDisk one(5 * kPieceBytes + 100);
  CHECK((one.pieces(1, kPieceBytes) == one.content.substr(kPieceBytes, kPieceBytes)));
  CHECK((one.pieces(4, kPieceBytes + 100) == one.content.substr(4 * kPieceBytes)));
  CHECK_FALSE(one.pieces(5, 200));  // more than there is
}

TEST_CASE("sealed file: with another key, kind or owner nothing of it is read") {
  SealedOnDisk one(100);
  CHECK(one.header(0x41).empty());
  CHECK(one.header(0x40, std::string_view("LHTEST\0\2", 8)).empty());
  CHECK(one.header(0x40, kTestMagic, "another").empty());
  CHECK_FALSE(one.pieces(0, 100, "another"));
  one.salt[5] ^= std::byte{1};
  CHECK_FALSE(one.pieces(0, 100));
}

TEST_CASE("sealed file: a changed bit, a piece in another place and a torn file are detected") {
  SealedOnDisk one(2 * kPieceBytes);
  const std::string whole = one.bytes();
  std::mt19937 random(3);
  for (int i = 0; i < 30; ++i) {
    std::string changed = whole;
    const std::size_t at = random() % changed.size();
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    one.save(changed);
    CAPTURE(at);
    // Of the salt the content's reader knows its own.
    if (at >= sealed_header_bytes(kSealedHeader.size()))
      CHECK_FALSE(one.pieces(0, 2 * kPieceBytes));
    else
      CHECK(one.header().empty());
  }
  const std::size_t begin = sealed_header_bytes(kSealedHeader.size()), piece = kAeadTagBytes + kPieceBytes;
  one.save(whole.substr(0, begin) + whole.substr(begin + piece) + whole.substr(begin, piece));
  CHECK_FALSE(one.pieces(0, 2 * kPieceBytes));
  one.save(whole.substr(0, begin - 1));
  CHECK(one.header().empty());
  one.save(whole);
  CHECK(one.header() == kSealedHeader);
  CHECK((one.pieces(0, 2 * kPieceBytes) == one.content));
}

}  // namespace
}  // namespace longhaul::cache
