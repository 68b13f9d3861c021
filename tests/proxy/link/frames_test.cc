// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/frames.h"

#include <random>
#include <set>
#include <sstream>

#include "golden.h"
#include "numbers.h"

using namespace longhaul;
using namespace longhaul::link;

namespace {

// Every field in words, so that two frames are equal if their descriptions are.
std::string describe(const Frame& frame) {
  std::ostringstream out;
  auto hex = [](Bytes bytes) { return golden::to_hex(bytes); };
  if (auto* f = std::get_if<HelloFrame>(&frame))
    out << "HELLO " << f->version << ' ' << hex(f->session) << ' ' << hex(f->nonce) << ' ' << f->site << ' '
        << f->udp_port << ' ' << f->epoch << ' ' << int(f->ciphers) << ' ' << f->blocks;
  if (auto* f = std::get_if<HelloFrame>(&frame))
    for (const ModuleName& module : f->modules) out << ' ' << module.name << '/' << module.version;
  if (auto* f = std::get_if<StreamFrame>(&frame))
    out << "STREAM " << f->stream << ' ' << f->offset << ' ' << hex(f->payload);
  if (auto* f = std::get_if<AckFrame>(&frame)) {
    out << "ACK";
    for (const auto& e : f->entries) out << ' ' << e.stream << ':' << e.offset;
  }
  if (auto* f = std::get_if<CreditFrame>(&frame)) {
    out << "CREDIT";
    for (const auto& e : f->entries) out << ' ' << e.stream << ':' << e.generation << ':' << e.limit;
  }
  if (auto* f = std::get_if<CreditReturnFrame>(&frame))
    out << "CREDIT_RETURN " << f->stream << ' ' << f->generation << ' ' << f->limit;
  if (auto* f = std::get_if<ResetFrame>(&frame))
    out << "RESET " << f->stream << ' ' << int(f->code) << ' ' << f->open_credit;
  if (auto* f = std::get_if<ResetDoneFrame>(&frame)) out << "RESET_DONE " << f->stream;
  if (auto* f = std::get_if<PingFrame>(&frame)) out << "PING " << f->number;
  if (auto* f = std::get_if<PongFrame>(&frame)) out << "PONG " << f->number;
  if (auto* f = std::get_if<CloseFrame>(&frame)) out << "CLOSE " << int(f->code) << ' ' << f->text;
  if (auto* f = std::get_if<OpenCreditFrame>(&frame)) out << "OPEN_CREDIT " << f->limit << ' ' << f->floor;
  return out.str();
}

Token token(unsigned first) {
  Token made;
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = std::byte(first + i);
  return made;
}

std::vector<std::pair<std::string, Frame>> samples() {
  return {
      {"hello_first", HelloFrame{.session = {}, .nonce = token(0x10), .site = "branch"}},
      {"hello_resume", HelloFrame{.session = token(0xa0), .nonce = token(0x20), .site = "datacenter"}},
      {"hello_udp_offer",
       HelloFrame{.nonce = token(0x10), .site = "branch", .udp_port = 7600, .epoch = 300, .ciphers = 3}},
      {"hello_udp_answer",
       HelloFrame{.nonce = token(0x20), .site = "datacenter", .udp_port = 7600, .epoch = 300, .ciphers = 1}},
      {"hello_blocks", HelloFrame{.nonce = token(0x10), .site = "branch", .blocks = 1}},
      {"hello_modules",
       HelloFrame{
           .nonce = token(0x10), .site = "branch", .blocks = 1, .modules = {{"smb", 1}, {"nfs", 300}}}},
      {"hello_features",
       HelloFrame{.nonce = token(0x10), .site = "branch", .features = {"nfs", "nfs.ahead"}}},
      {"hello_paths", HelloFrame{.nonce = token(0x10),
                                 .site = "branch",
                                 .udp_port = 7600,
                                 .epoch = 1,
                                 .ciphers = 3,
                                 .paths = {"mpls", "internet"}}},
      {"stream", StreamFrame{1_stream, 0_offset, as_bytes("hello")}},
      {"stream_empty", StreamFrame{2_stream, 63_offset, {}}},
      {"stream_large_numbers", StreamFrame{0x1234_stream, 0x0123456789_offset, as_bytes("x")}},
      {"ack", AckFrame{{{0_stream, 20_offset}, {1_stream, 16'384_offset}, {2_stream, 1'073'741'824_offset}}}},
      {"ack_empty", AckFrame{}},
      {"credit", CreditFrame{{{1_stream, 1, 65'535}, {64_stream, 300, 0}}}},
      {"credit_return", CreditReturnFrame{1_stream, 7, 4096}},
      {"reset_connection", ResetFrame{5_stream, ResetCode::connection_reset, 0}},
      {"reset_aborted", ResetFrame{7_stream, ResetCode::aborted, 262'144}},
      {"reset_undecodable", ResetFrame{8_stream, ResetCode::undecodable, 0}},
      {"reset_no_reader", ResetFrame{9_stream, ResetCode::no_reader, 100}},
      {"reset_done", ResetDoneFrame{7_stream}},
      {"ping", PingFrame{1}},
      {"pong", PongFrame{0x4000}},
      {"close_shutting_down", CloseFrame{CloseCode::shutting_down, "shutting down"}},
      {"close_duplicate", CloseFrame{CloseCode::duplicate, ""}},
      {"close_busy", CloseFrame{CloseCode::busy, "try again"}},
      {"close_protocol_error", CloseFrame{CloseCode::protocol_error, "x"}},
      {"close_refused", CloseFrame{CloseCode::refused, "no"}},
      {"open_credit", OpenCreditFrame{8'388'608, 16'384}},
  };
}

Buffer written(const Frame& frame) {
  Buffer bytes;
  write_frame(frame, bytes);
  return bytes;
}

Buffer raw(std::initializer_list<unsigned> bytes) {
  Buffer buffer;
  for (unsigned b : bytes) buffer.push_back(std::byte(b));
  return buffer;
}

}  // namespace

TEST_CASE("frames are encoded and decoded exactly as the golden vectors") {
  auto vectors = golden::read("frames.txt");
  for (const auto& [name, frame] : samples()) {
    INFO(name);
    CHECK(golden::to_hex(written(frame)) == vectors[name]);
    Buffer bytes = golden::from_hex(vectors[name]);
    auto parsed = parse_frame(bytes);
    REQUIRE(parsed.has_value());
    REQUIRE(parsed->has_value());
    CHECK((*parsed)->consumed == bytes.size());
    REQUIRE((*parsed)->frame);
    CHECK(describe(*(*parsed)->frame) == describe(frame));
    vectors.erase(name);
  }
  CHECK(vectors.empty());
}

TEST_CASE("every frame type has a golden vector") {
  std::set<std::size_t> kinds;
  for (const auto& [name, frame] : samples()) kinds.insert(frame.index());
  CHECK(kinds.size() == std::variant_size_v<Frame>);
}

TEST_CASE("a truncated frame is incomplete and never taken for another frame") {
  for (const auto& [name, frame] : samples()) {
    Buffer bytes = written(frame);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      Buffer torn(bytes.begin(), bytes.begin() + static_cast<long>(size));
      auto parsed = parse_frame(torn);
      INFO(name << " cut at " << size);
      REQUIRE(parsed.has_value());
      REQUIRE_FALSE(parsed->has_value());
    }
  }
}

TEST_CASE("frames of unknown types are skipped completely") {
  Buffer bytes = raw({99, 3, 1, 2, 3});
  Buffer next = written(PingFrame{5});
  bytes.insert(bytes.end(), next.begin(), next.end());
  auto parsed = parse_frame(bytes);
  REQUIRE(parsed.has_value());
  REQUIRE(parsed->has_value());
  CHECK_FALSE((*parsed)->frame);
  CHECK((*parsed)->consumed == 5);
}

TEST_CASE("a length beyond the limit is an error before the bytes arrive") {
  Buffer bytes;
  ByteWriter writer(bytes);
  writer.u8(static_cast<std::uint8_t>(FrameType::stream));
  writer.varint(kMaxFrameBody + 1);
  CHECK(parse_frame(bytes).error() == LinkError::frame_too_large);
  bytes[0] = std::byte{99};
  CHECK(parse_frame(bytes).error() == LinkError::frame_too_large);
}

TEST_CASE("the largest payload fits into a frame, one byte more does not") {
  CHECK(parse_frame(written(StreamFrame{StreamId(kMaxVarint), 0_offset, Buffer(kMaxStreamPayload)}))
            .value()
            .has_value());
  CHECK_FALSE(
      parse_frame(written(StreamFrame{1_stream, 0_offset, Buffer(kMaxStreamPayload + 1)})).has_value());
}

TEST_CASE("a body that is too short or too long for its type is malformed") {
  for (const auto& [name, frame] : samples()) {
    Buffer bytes = written(frame);
    if (bytes[1] == std::byte{0} || std::holds_alternative<StreamFrame>(frame)) continue;
    INFO(name);
    // One byte less in the body, and the length says so; lists may end where an entry ends.
    Buffer shorter(bytes.begin(), bytes.end() - 1);
    shorter[1] = std::byte(std::to_integer<unsigned>(shorter[1]) - 1);
    const auto* hello = std::get_if<HelloFrame>(&frame);
    // One that has no `blocks` ends where it would begin, as an older release's does.
    CHECK(parse_frame(shorter).has_value() ==
          (hello && hello->blocks && hello->modules.empty() && hello->features.empty()));
    Buffer longer = bytes;
    longer[1] = std::byte(std::to_integer<unsigned>(longer[1]) + 1);
    longer.push_back(std::byte{0xff});
    // Later releases may say more in a HELLO, behind all of its fields.
    CHECK(parse_frame(longer).has_value() == (hello && !hello->paths.empty()));
  }
}

TEST_CASE("numbers and codes outside their range are malformed or map to the nearest meaning") {
  SECTION("an offset whose end exceeds the largest number") {
    Buffer bytes = written(StreamFrame{1_stream, StreamOffset(kMaxVarint), {}});
    CHECK(parse_frame(bytes).has_value());
    CHECK_FALSE(
        parse_frame(written(StreamFrame{1_stream, StreamOffset(kMaxVarint), as_bytes("x")})).has_value());
  }
  SECTION("a reset code of a later version") {
    auto parsed = parse_frame(raw({6, 3, 5, 77, 0}));
    REQUIRE(parsed.has_value());
    CHECK(std::get<ResetFrame>(*(*parsed)->frame).code == ResetCode::aborted);
  }
  SECTION("a close code of a later version") {
    auto parsed = parse_frame(raw({10, 2, 77, 0}));
    REQUIRE(parsed.has_value());
    CHECK(std::get<CloseFrame>(*(*parsed)->frame).code == CloseCode::shutting_down);
  }
  SECTION("a hello of another version, in any layout") {
    auto parsed = parse_frame(raw({1, 4, 2, 0xff, 0xff, 0xff}));
    REQUIRE(parsed.has_value());
    CHECK(std::get<HelloFrame>(*(*parsed)->frame).version == 2);
  }
  SECTION("a hello of a release that ends with its site: no UDP, and half a field is malformed") {
    Buffer bytes = written(HelloFrame{.site = "old", .udp_port = 7600, .epoch = 300, .ciphers = 3});
    constexpr std::size_t kUdpBytes = 2 + 2 + 1;
    auto cut_by = [&](std::size_t cut) {
      Buffer shorter(bytes.begin(), bytes.end() - static_cast<long>(cut));
      shorter[1] = std::byte(std::to_integer<unsigned>(shorter[1]) - cut);
      return parse_frame(shorter);
    };
    for (std::size_t cut = 1; cut < kUdpBytes; ++cut) CHECK_FALSE(cut_by(cut).has_value());
    Buffer old(bytes.begin(), bytes.end() - kUdpBytes);
    old[1] = std::byte(old.size() - 2);
    auto parsed = parse_frame(old);
    REQUIRE(parsed.has_value());
    const auto& hello = std::get<HelloFrame>(*(*parsed)->frame);
    CHECK(hello.site == "old");
    CHECK((hello.udp_port == 0 && hello.epoch == 0 && hello.ciphers == 0));
  }
  SECTION("paths of a hello: too many, without a name, with a long one, or with the same one twice") {
    const auto accepted = [](std::vector<std::string> paths) {
      return parse_frame(written(HelloFrame{.site = "a", .paths = std::move(paths)})).has_value();
    };
    CHECK(accepted({"1", "2", "3", "4", "5", "6", "7", std::string(32, 'x')}));
    CHECK_FALSE(accepted({"1", "2", "3", "4", "5", "6", "7", "8", "9"}));
    CHECK_FALSE(accepted({"1", ""}));
    CHECK_FALSE(accepted({std::string(33, 'x')}));
    CHECK_FALSE(accepted({"1", "2", "1"}));
  }
  SECTION("a site's name and a close text that are too long") {
    CHECK(
        std::get<HelloFrame>(*parse_frame(written(HelloFrame{.site = std::string(100, 's')})).value()->frame)
            .site.size() == 64);
    CHECK(std::get<CloseFrame>(
              *parse_frame(written(CloseFrame{CloseCode::busy, std::string(1000, 't')})).value()->frame)
              .text.size() == 256);
    Buffer close = raw({10, 0x41, 0x04, 0, 0x41, 0x01});
    close.resize(close.size() + 257);
    CHECK_FALSE(parse_frame(close).has_value());
  }
}

TEST_CASE("a STREAM frame header encoded alone equals that of the complete frame") {
  for (StreamId id : {0_stream, 63_stream, 64_stream, StreamId(kMaxVarint)})
    for (StreamOffset offset : {0_offset, 16'383_offset, 16'384_offset, StreamOffset(1 << 30)})
      for (std::size_t size : {0u, 1u, 60u, 61u, 62u, 63u, 64u, 16'380u, 65'536u}) {
        Buffer payload(size), head;
        write_stream_head(id, offset, size, head);
        CHECK(head.size() == stream_head_size(id, offset, size));
        head.insert(head.end(), payload.begin(), payload.end());
        CHECK(head == written(StreamFrame{id, offset, payload}));
      }
}

TEST_CASE("random frames are read back unchanged") {
  std::mt19937_64 random(20);
  auto number = [&] { return (random() & kMaxVarint) >> (random() % 62); };
  auto stream = [&] { return StreamId(number()); };
  for (int i = 0; i < 3000; ++i) {
    Buffer payload(random() % 100);
    for (std::byte& b : payload) b = std::byte(random() & 0xff);
    AckFrame ack;
    CreditFrame credit;
    for (std::uint64_t n = random() % 20; n > 0; --n) {
      ack.entries.push_back({stream(), StreamOffset(number())});
      credit.entries.push_back({stream(), number(), number()});
    }
    for (const Frame& frame : {Frame(StreamFrame{stream(), StreamOffset(number() / 2), payload}), Frame(ack),
                               Frame(credit), Frame(CreditReturnFrame{stream(), number(), number()}),
                               Frame(ResetFrame{stream(), ResetCode(random() % 5), number()}),
                               Frame(PingFrame{number()}), Frame(OpenCreditFrame{number(), number()})}) {
      Buffer bytes = written(frame);
      auto parsed = parse_frame(bytes);
      REQUIRE(parsed.has_value());
      REQUIRE(parsed->has_value());
      REQUIRE(describe(*(*parsed)->frame) == describe(frame));
    }
  }
}
