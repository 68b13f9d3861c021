// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/frames.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "codecs/byte_writer.h"

using namespace longhaul;
using namespace longhaul::smb;

namespace {

Slice slice(std::string_view text) { return Slice::copy_of(as_bytes(text)); }

// A frame of type `type` whose head announces what is in it.
std::string packet(int type, std::string_view content) {
  std::string bytes(kFrameHeadBytes, '\0');
  bytes[0] = static_cast<char>(type);
  bytes[1] = static_cast<char>(content.size() >> 16);
  bytes[2] = static_cast<char>(content.size() >> 8);
  bytes[3] = static_cast<char>(content.size());
  return bytes.append(content);
}
std::string message(std::string_view protocol_id, std::size_t bytes, char fill = 'x') {
  std::string content(protocol_id);
  content.resize(bytes, fill);
  return packet(0, content);
}
constexpr std::string_view kSmb1 = "\xFFSMB", kSmb2 = "\xFESMB", kTransform = "\xFDSMB",
                           kCompressed = "\xFCSMB";

std::string text_of(const std::vector<Slice>& slices) {
  std::string text;
  for (const Slice& s : slices) text += as_text(s.bytes());
  return text;
}

struct Cut {
  std::vector<std::pair<FrameKind, std::string>> frames;
  std::optional<boost::system::error_code> error;
  std::string rest;
  bool operator==(const Cut&) const = default;
};

// Pushes `text` in pieces of the sizes that `piece_bytes` gives.
template <class Sizes>
Cut cut(Framing framing, std::string_view text, Sizes&& piece_bytes, std::size_t most = kMaxFrameBytes,
        Bare bare = Bare::unexpected) {
  FrameSplitter splitter(framing, most);
  Cut result;
  while (!text.empty() && !result.error) {
    const std::size_t bytes = std::min(text.size(), std::max<std::size_t>(1, piece_bytes()));
    splitter.push(slice(text.substr(0, bytes)));
    text.remove_prefix(bytes);
    for (;;) {
      auto frame = splitter.next(bare);
      if (!frame) result.error = frame.error();
      if (!frame || !*frame) break;
      result.frames.emplace_back((*frame)->kind, as_text((*frame)->bytes.bytes()));
    }
  }
  const std::size_t held = splitter.held_bytes();
  result.rest = text_of(splitter.take_rest());
  CHECK(held == result.rest.size());
  CHECK(splitter.held_bytes() == 0);
  result.rest += text;
  return result;
}
auto all_at_once() {
  return [] { return ~std::size_t{0}; };
}
auto one_by_one() {
  return [] { return std::size_t{1}; };
}

std::string conversation() {
  return packet(0x81, std::string(68, 'n')) + packet(0x82, "") + message(kSmb1, 35) + packet(0x85, "") +
         message(kSmb2, 64) + message(kSmb2, 100'000) + message(kTransform, 52 + 64) +
         message(kCompressed, 40) + packet(0x83, "\x80");
}

}  // namespace

TEST_CASE("frames of SMB1, SMB2 and the session service are complete, however they are split") {
  const std::string text = conversation();
  for (const Framing framing : {Framing::netbios, Framing::direct_tcp}) {
    const Cut whole = cut(framing, text, all_at_once());
    CHECK_FALSE(whole.error);
    CHECK(whole.rest.empty());
    std::vector<FrameKind> kinds;
    std::string joined;
    for (const auto& [kind, bytes] : whole.frames) {
      kinds.push_back(kind);
      joined += bytes;
    }
    CHECK(joined == text);
    CHECK(kinds == std::vector{FrameKind::session_request, FrameKind::session_accepted, FrameKind::smb1,
                               FrameKind::keep_alive, FrameKind::smb2, FrameKind::smb2,
                               FrameKind::smb2_transform, FrameKind::smb2_compressed,
                               FrameKind::session_refused});
    CHECK(cut(framing, text, one_by_one()) == whole);
    for (unsigned seed = 1; seed <= 20; ++seed) {
      INFO("seed " << seed);
      std::mt19937 random(seed);
      CHECK(cut(framing, text, [&] { return random() % (seed % 2 ? 40 : 30'000); }) == whole);
    }
  }
}

TEST_CASE("a frame within one piece is not copied, and one in several pieces is copied once") {
  const Slice piece = slice(message(kSmb2, 70) + message(kSmb2, 80) + message(kSmb2, 90));
  FrameSplitter splitter(Framing::direct_tcp);
  splitter.push(piece.sub(0, 200));
  for (const std::size_t at : {0u, 74u}) {
    auto frame = splitter.next().value();
    REQUIRE(frame);
    CHECK(frame->bytes.bytes().data() == piece.bytes().data() + at);
  }
  CHECK_FALSE(splitter.next().value());
  splitter.push(piece.from(200));
  auto third = splitter.next().value();
  REQUIRE(third);
  CHECK(third->message().size() == 90);
  CHECK(as_text(third->bytes.bytes()) == as_text(piece.bytes()).substr(158));
  CHECK(splitter.held_bytes() == 0);
}

TEST_CASE("bytes that are not SMB are detected at the first byte that shows it") {
  struct Sample {
    std::string text;
    std::size_t shown_by;  // so many bytes are enough
    Error error;
  };
  const std::string too_large = message(kSmb2, 200);
  for (const Framing framing : {Framing::netbios, Framing::direct_tcp}) {
    for (const auto& [text, shown_by, error] :
         {Sample{"GET / HTTP/1.1\r\n", 1, Error::unknown_frame},
          Sample{packet(0x86, ""), 1, Error::unknown_frame},
          Sample{packet(0x81, std::string(2000, 'n')), 4, Error::unknown_frame},
          Sample{packet(0, ""), 4, Error::unknown_frame}, Sample{packet(0, "abc"), 4, Error::unknown_frame},
          Sample{packet(0, "\xFBSMBxxxx"), 5, Error::unknown_frame},
          Sample{packet(0, "\xFESMb    "), 8, Error::unknown_frame},
          Sample{too_large, 4, Error::frame_too_large}}) {
      const std::string before = message(kSmb1, 40);
      for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
        INFO(bytes << " bytes of " << text.substr(0, 20));
        const Cut result = cut(framing, before + text.substr(0, bytes), one_by_one(), 200);
        REQUIRE(result.frames.size() == 1);
        CHECK(result.error.has_value() == (bytes >= shown_by));
        if (result.error) CHECK(*result.error == error);
        CHECK(result.rest == text.substr(0, bytes));
      }
    }
  }
}

TEST_CASE("an error is repeated, and no later bytes are parsed") {
  FrameSplitter splitter(Framing::direct_tcp);
  splitter.push(slice("no SMB"));
  CHECK(splitter.next().error() == Error::unknown_frame);
  splitter.push(slice(message(kSmb2, 64)));
  CHECK(splitter.next().error() == Error::unknown_frame);
  CHECK(text_of(splitter.take_rest()) == "no SMB" + message(kSmb2, 64));
  CHECK_FALSE(splitter.next().value());
}

TEST_CASE("the length has 17 bits on port 139 and 24 on port 445") {
  const std::string long_frame = message(kSmb2, 1 << 17), longest139 = message(kSmb2, (1 << 17) - 1);
  CHECK(cut(Framing::netbios, long_frame, all_at_once()).error == make_error_code(Error::frame_too_large));
  CHECK(cut(Framing::netbios, longest139, all_at_once()).frames.size() == 1);
  CHECK(cut(Framing::direct_tcp, long_frame, all_at_once()).frames.size() == 1);
  const std::string largest = message(kSmb2, kMaxFrameBytes - kFrameHeadBytes);
  CHECK(cut(Framing::direct_tcp, largest, [] { return std::size_t{65'536}; }).frames.size() == 1);
  CHECK(cut(Framing::direct_tcp, message(kSmb2, kMaxFrameBytes), all_at_once()).error ==
        make_error_code(Error::frame_too_large));
}

TEST_CASE("raw data without a header passes at the expected places") {
  for (const std::string_view content : {"", "ab", "raw data", "\xFFSM", "\xFFSMx and more"}) {
    const std::string text = packet(0, content);
    INFO(content);
    for (const bool whole : {true, false}) {
      const auto expected = whole ? cut(Framing::netbios, text, all_at_once(), kMaxFrameBytes, Bare::expected)
                                  : cut(Framing::netbios, text, one_by_one(), kMaxFrameBytes, Bare::expected);
      REQUIRE(expected.frames.size() == 1);
      CHECK(expected.frames[0].first == FrameKind::bare);
      CHECK(expected.frames[0].second == text);
    }
    CHECK(cut(Framing::netbios, text, all_at_once()).error == make_error_code(Error::unknown_frame));
  }
  // What has a header is known by it even then: an oplock break may come in the place of raw data.
  CHECK(cut(Framing::netbios, message(kSmb1, 40), one_by_one(), kMaxFrameBytes, Bare::expected)
            .frames[0]
            .first == FrameKind::smb1);
}

TEST_CASE("the rest of an incomplete frame is returned in order") {
  const std::string text = message(kSmb2, 64) + message(kSmb2, 500);
  for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
    for (const bool whole : {true, false}) {
      const Cut result = whole ? cut(Framing::direct_tcp, text.substr(0, bytes), all_at_once())
                               : cut(Framing::direct_tcp, text.substr(0, bytes), one_by_one());
      std::string joined;
      for (const auto& frame : result.frames) joined += frame.second;
      CHECK(joined + result.rest == text.substr(0, bytes));
      CHECK(result.frames.size() == std::size_t{bytes >= 68} + std::size_t{bytes == text.size()});
    }
  }
}
