// SPDX-License-Identifier: Apache-2.0
// Both legs of a signed SMB1 connection: what is signed for one number leaves with another one where requests
// were answered or added, and nothing that is forged goes on. The expected signature was computed with
// another implementation (Python's).
#include "proxy/modules/smb/seal/smb1_leg.h"

#include <catch2/catch.hpp>

#include "tests/codecs/hex.h"
#include "tests/proxy/modules/smb/smb1/requests.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::seal;
using smb1::testing::Head;

namespace {

const Buffer kKey = from_hex("101112131415161718191a1b1c1d1e1f");
constexpr std::uint16_t kLoginMid = 1;

struct What {
  smb1::Command command = smb1::Command::echo;
  std::uint16_t mid = 2;
  bool reply = false;
  bool is_signed = true;
  std::uint32_t pid = 0x1234;
};

Buffer plain(const What& what) {
  const Slice frame =
      smb1::testing::make_frame({.command = static_cast<std::uint8_t>(what.command),
                                 .flags = static_cast<std::uint8_t>(what.reply ? 0x98 : 0x18),
                                 .flags2 = static_cast<std::uint16_t>(what.is_signed ? 0xC805 : 0xC801),
                                 .pid = what.pid,
                                 .tid = 7,
                                 .uid = 9,
                                 .mid = what.mid},
                                from_hex("0100"), from_hex("61626364"));
  return {frame.bytes().begin(), frame.bytes().end()};
}

// As a client or server signs it.
Frame sent(const What& what, std::uint32_t number, Bytes key = kKey) {
  Buffer frame = plain(what);
  const Bytes message = Bytes(frame).subspan(kFrameHeadBytes);
  const Bytes rest = message.subspan(smb1::kHeaderBytes);
  const Smb1Signature signature =
      Smb1Signer(key).sign(number, message.first(smb1::kHeaderBytes), std::span(&rest, 1));
  std::copy(signature.begin(), signature.end(), frame.begin() + kFrameHeadBytes + smb1_at::signature);
  return {FrameKind::smb1, Slice::copy_of(frame)};
}

Buffer joined(const std::vector<Slice>& pieces) {
  Buffer all;
  for (const Slice& piece : pieces) append(all, piece.bytes());
  return all;
}

Buffer to(Smb1Leg& leg, const Slice& frame) {
  std::vector<Slice> out;
  REQUIRE(leg.seal(frame, out).has_value());
  return joined(out);
}

Buffer bytes_of(const Frame& frame) { return {frame.bytes.bytes().begin(), frame.bytes.bytes().end()}; }

struct Legs {
  Legs() {
    near.begin(number_of(kLoginMid), kKey);
    far.begin(number_of(kLoginMid), kKey);
  }
  static MessageNumber number_of(std::uint16_t mid, std::uint32_t pid = 0x1234) {
    return MessageNumber{std::uint64_t{pid} << 16 | mid};
  }

  // From the client to the server, with the number that each of them expects.
  void asks(const What& what, std::uint32_t at_client, std::uint32_t at_server) {
    const auto opened = near.open(sent(what, at_client));
    REQUIRE(opened.has_value());
    CHECK(bytes_of(*opened) == plain({what.command, what.mid, what.reply, false, what.pid}));
    CHECK(to(far, opened->bytes) == bytes_of(sent(what, at_server)));
  }
  void answers(const What& what, std::uint32_t at_server, std::uint32_t at_client) {
    const auto opened = far.open(sent(what, at_server));
    REQUIRE(opened.has_value());
    CHECK(to(near, opened->bytes) == bytes_of(sent(what, at_client)));
  }
  Smb1Leg near{Smb1Leg::To::client}, far{Smb1Leg::To::server};
};

}  // namespace

TEST_CASE("smb1 signing: the signature is that of another implementation, in pieces too") {
  const Buffer message =
      from_hex("ff534d422b000000001805c80000000000000000000000000700341209000500010100040061626364");
  const Bytes rest = Bytes(message).subspan(32);
  const auto sign = [&](std::uint32_t number, std::vector<Bytes> pieces) {
    const Smb1Signature found = Smb1Signer(kKey).sign(number, Bytes(message).first(32), pieces);
    return Buffer(found.begin(), found.end());
  };
  CHECK(sign(2, {rest}) == from_hex("2a77cca7186055f6"));
  CHECK(sign(3, {rest.first(2), {}, rest.subspan(2)}) == from_hex("30d77ac309e92bad"));
}

TEST_CASE(
    "smb1 signing: requests and answers have numbers in pairs from the login's on, in any order of answers") {
  Legs legs;
  legs.answers({smb1::Command::session_setup_andx, kLoginMid, true}, 1, 1);
  legs.asks({.mid = 2}, 2, 2);
  legs.asks({.mid = 3}, 4, 4);
  legs.answers({.mid = 3, .reply = true}, 5, 5);
  legs.answers({.mid = 2, .reply = true}, 3, 3);
  legs.answers({.mid = 2, .reply = true}, 3, 3);  // another part
  legs.asks({.mid = 2}, 6, 6);                    // and another request
  legs.answers({.mid = 2, .reply = true}, 7, 7);
}

TEST_CASE("smb1 signing: requests that are answered here or added make the numbers of the legs differ") {
  Legs legs;
  // Answered by the near half.
  REQUIRE(legs.near.open(sent({.mid = 2}, 2)).has_value());
  CHECK(to(legs.near, Slice::copy_of(plain({.mid = 2, .reply = true, .is_signed = false}))) ==
        bytes_of(sent({.mid = 2, .reply = true}, 3)));
  legs.asks({.mid = 3}, 4, 2);
  // Added by the far half.
  const What ours{.command = smb1::Command::read_andx, .mid = 1, .is_signed = false, .pid = 0x4C484C48};
  CHECK(to(legs.far, Slice::copy_of(plain(ours))) ==
        bytes_of(sent({ours.command, 1, false, true, ours.pid}, 4)));
  legs.asks({.mid = 4}, 6, 6);
  REQUIRE(legs.far.open(sent({ours.command, 1, true, true, ours.pid}, 5)).has_value());
  legs.answers({.mid = 4, .reply = true}, 7, 7);
  legs.answers({.mid = 3, .reply = true}, 3, 5);
}

TEST_CASE("smb1 signing: a CANCEL has one number, and leaves its request's") {
  Legs legs;
  legs.asks({smb1::Command::nt_transact, 2}, 2, 2);
  legs.asks({smb1::Command::nt_cancel, 2}, 4, 4);
  legs.asks({.mid = 3}, 5, 5);
  legs.answers({smb1::Command::nt_transact, 2, true}, 3, 3);
  legs.answers({.mid = 3, .reply = true}, 6, 6);
}

TEST_CASE("smb1 signing: a transaction's answer may have the number of its first or of its last request") {
  for (const bool last : {false, true}) {
    Legs legs;
    legs.asks({smb1::Command::trans2, 2}, 2, 2);
    legs.answers({smb1::Command::trans2, 2, true}, 3, 3);  // goes on
    legs.asks({smb1::Command::trans2_secondary, 2}, 4, 4);
    legs.asks({smb1::Command::trans2_secondary, 2}, 6, 6);
    legs.answers({smb1::Command::trans2, 2, true}, last ? 7 : 3, last ? 7 : 3);
  }
}

TEST_CASE("smb1 signing: the server's break of an oplock is not signed on either leg") {
  Legs legs;
  const What brk{smb1::Command::locking_andx, smb1::kBreakMid, false, false, 0xFFFF};
  const auto opened = legs.far.open({FrameKind::smb1, Slice::copy_of(plain(brk))});
  REQUIRE(opened.has_value());
  CHECK(to(legs.near, opened->bytes) == plain(brk));
  legs.asks({.mid = 2}, 2, 2);
  // Nothing else comes unasked.
  const What other{.command = smb1::Command::echo, .mid = smb1::kBreakMid, .is_signed = false};
  CHECK(legs.far.open({FrameKind::smb1, Slice::copy_of(plain(other))}).error() == Error::forged);
}

TEST_CASE("smb1 signing: what is changed, repeated, of another number or key, or not signed, is refused") {
  const Frame request = sent({.mid = 2}, 2);
  const auto refused = [](const Frame& frame) { return !Legs().near.open(frame); };
  CHECK_FALSE(refused(request));
  for (std::size_t at = kFrameHeadBytes; at < request.bytes.size(); ++at) {
    if (at < kFrameHeadBytes + 4) continue;  // not a message of SMB1 any more
    Buffer other = bytes_of(request);
    other[at] ^= std::byte{1};
    CHECK(refused({FrameKind::smb1, Slice::copy_of(other)}));
  }
  CHECK(refused(sent({.mid = 2}, 4)));
  CHECK(refused(sent({.mid = 2}, 2, from_hex("00112233445566778899aabbccddeeff"))));
  Legs legs;
  REQUIRE(legs.near.open(request).has_value());
  CHECK(legs.near.open(request).error() == Error::forged);
  CHECK(Legs().near.open({FrameKind::smb1, Slice::copy_of(plain({.is_signed = false}))}).error() ==
        Error::unprotected);
  CHECK(Legs().near.open({FrameKind::smb2, request.bytes}).error() == Error::unprotected);
  // An answer that nobody asked for, or in the name of another request.
  CHECK(Legs().far.open(sent({.mid = 2, .reply = true}, 3)).error() == Error::forged);
  Legs both;
  both.asks({.mid = 3}, 2, 2);
  both.asks({.mid = 4}, 4, 4);
  CHECK(both.far.open(sent({.mid = 4, .reply = true}, 3)).error() == Error::forged);
  // A client sends no answers.
  CHECK(Legs().near.open(sent({.mid = 2, .reply = true}, 2)).error() == Error::forged);
}

TEST_CASE("smb1 signing: until a login has its key everything passes, and then its own in any pieces") {
  Smb1Leg leg{Smb1Leg::To::server};
  const Frame request = sent({.mid = 2}, 9);
  REQUIRE(leg.open(request).has_value());
  CHECK(to(leg, request.bytes) == bytes_of(request));
  leg.begin(Legs::number_of(kLoginMid), kKey);
  const Buffer two = joined({Slice::copy_of(plain({.mid = 2})), Slice::copy_of(plain({.mid = 3}))});
  std::vector<Slice> out;
  for (const std::byte byte : two) REQUIRE(leg.seal(Slice::copy_of({&byte, 1}), out).has_value());
  CHECK(joined(out) == joined({sent({.mid = 2}, 2).bytes, sent({.mid = 3}, 4).bytes}));
}

TEST_CASE("smb1 signing: requests without answers are bounded") {
  Legs legs;
  bool refused = false;
  for (std::size_t i = 0; i <= Smb1Leg::kMostRequests && !refused; ++i) {
    const What what{.mid = static_cast<std::uint16_t>(i),
                    .pid = 0x5000 + static_cast<std::uint32_t>(i >> 16)};
    refused = !legs.near.open(sent(what, static_cast<std::uint32_t>(2 + 2 * i)));
  }
  CHECK(refused);
}
