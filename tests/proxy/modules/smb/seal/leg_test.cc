// SPDX-License-Identifier: Apache-2.0
// Both legs of a connection, with keys of their own: what a client sends arrives at the server protected
// alike, and nothing that is forged or too weakly protected goes on.
#include "proxy/modules/smb/seal/leg.h"

#include <catch2/catch.hpp>

#include "codecs/little_endian.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::seal;
using namespace longhaul::smb::smb2::test;
using smb2::Command;

namespace {

constexpr smb2::SessionId kOurs = 0x51, kNobodys = 0x99, kAnother = 0x52;

SessionKeys keys_of(std::uint8_t first) {
  SessionKeys keys;
  keys.signing.bytes.fill(std::byte{first});
  keys.to_server = SecretBytes(16);
  keys.to_client = SecretBytes(16);
  std::fill_n(keys.to_server.data(), 16, std::byte(first + 1));
  std::fill_n(keys.to_client.data(), 16, std::byte(first + 2));
  return keys;
}

smb2::Dialect dialect_with(Signing signing) {
  return signing == Signing::hmac_sha256 ? smb2::Dialect::smb_2_1
         : signing == Signing::aes_cmac  ? smb2::Dialect::smb_3_0
                                         : smb2::Dialect::smb_3_1_1;
}

struct Ends {
  explicit Ends(Signing signing = Signing::aes_gmac, bool must_sign = false)
      : agreement{.dialect = dialect_with(signing),
                  .signing = signing,
                  .cipher = Cipher::aes_128_gcm,
                  .must_sign = must_sign} {
    REQUIRE(near.begin(kOurs, agreement, keys_of(1)));
    REQUIRE(far.begin(kOurs, agreement, keys_of(101)));
  }
  Agreement agreement;
  // The client and the server themselves: each is the other end of a leg.
  Signer client_signer{agreement.signing, keys_of(1).signing},
      server_signer{agreement.signing, keys_of(101).signing};
  Transform client_out{Cipher::aes_128_gcm, keys_of(1).to_server},
      client_in{Cipher::aes_128_gcm, keys_of(1).to_client},
      server_in{Cipher::aes_128_gcm, keys_of(101).to_server},
      server_out{Cipher::aes_128_gcm, keys_of(101).to_client};
  Leg near{Leg::To::client}, far{Leg::To::server};
};

Slice frame_of(Command command, smb2::MessageId id, std::uint32_t flags = 0, std::size_t body = 100,
               Status status = Status::success, smb2::SessionId session = kOurs) {
  smb2::Header header{.credit_charge = 1,
                      .command = command,
                      .credits = 1,
                      .flags = flags,
                      .message_id = id,
                      .tree_id = 7,
                      .session_id = session};
  header.status = status;
  Buffer bytes(body, std::byte{0x5a});
  return smb2::build_message(header, bytes);
}

Slice frame_of(Command command, smb2::MessageId id, std::uint32_t flags, const Body& body) {
  return smb2::build_message(
      {.command = command, .credits = 1, .flags = flags, .message_id = id, .tree_id = 7, .session_id = kOurs},
      body.bytes);
}

Slice with_signature(Signer& signer, const Slice& frame) {
  std::byte* memory = nullptr;
  Slice copy = Slice::unfilled(frame.size(), memory);
  std::copy(frame.bytes().begin(), frame.bytes().end(), memory);
  std::byte* const header = memory + kFrameHeadBytes;
  store_le(header + smb2::header_at::flags,
           load_le<std::uint32_t>({header, 64}, smb2::header_at::flags) | smb2::header_flags::is_signed);
  const Bytes body = frame.bytes().subspan(kFrameHeadBytes + 64);
  const Signature signature = signer.sign({header, 64}, std::span(&body, 1));
  std::copy(signature.begin(), signature.end(), header + smb2::header_at::signature);
  return copy;
}

Slice encrypted(Transform& transform, const Slice& frame) {
  const Bytes message = frame.bytes().subspan(kFrameHeadBytes);
  return transform.seal(kOurs, std::span(&message, 1), message.size());
}

bool is_signed_by(Signer& signer, const Slice& frame) {
  const Bytes message = frame.bytes().subspan(kFrameHeadBytes);
  return (load_le<std::uint32_t>(message, smb2::header_at::flags) & smb2::header_flags::is_signed) &&
         signer.verify(message.first(64), message.subspan(64));
}

Slice sent(Leg& leg, const std::vector<Slice>& pieces) {
  std::vector<Slice> out;
  for (const Slice& piece : pieces)
    if (!leg.seal(piece, out)) return {};
  Buffer all;
  for (const Slice& piece : out) all.insert(all.end(), piece.bytes().begin(), piece.bytes().end());
  return Slice::copy_of(all);
}

Frame arrived(const Slice& bytes) {
  const bool transform = bytes.bytes()[4] == std::byte{0xFD};
  return {transform ? FrameKind::smb2_transform : FrameKind::smb2, bytes};
}

const auto kForged = smb::make_error_code(Error::forged);
const auto kUnprotected = smb::make_error_code(Error::unprotected);

// A client's request, through both legs; false: it was refused.
bool goes_through(Ends& ends, const Slice& request, bool encrypts = false) {
  const auto between = ends.near.open(
      arrived(encrypts ? encrypted(ends.client_out, request) : with_signature(ends.client_signer, request)));
  return between && !sent(ends.far, {between->bytes}).empty();
}
// What the far leg says of an answer.
boost::system::error_code answered(Ends& ends, const Slice& answer, bool encrypts = false) {
  const auto opened = ends.far.open(
      arrived(encrypts ? encrypted(ends.server_out, answer) : with_signature(ends.server_signer, answer)));
  return opened ? boost::system::error_code() : opened.error();
}

std::uint32_t flags_in(const Frame& frame) {
  return load_le<std::uint32_t>(frame.message(), smb2::header_at::flags);
}

}  // namespace

TEST_CASE("seal: a signed request is plain between the legs, and signed with the server's key behind them") {
  for (const Signing signing : {Signing::hmac_sha256, Signing::aes_cmac, Signing::aes_gmac}) {
    Ends ends(signing);
    const Slice request = frame_of(Command::read, 5);
    const auto between = ends.near.open(arrived(with_signature(ends.client_signer, request)));
    REQUIRE(between.has_value());
    CHECK((flags_in(*between) & smb2::header_flags::is_signed) == 0);
    CHECK(form_in(flags_in(*between)) == Form::with_signature);
    const Slice out = sent(ends.far, {between->bytes});
    CHECK(is_signed_by(ends.server_signer, out));
    CHECK_FALSE(is_signed_by(ends.client_signer, out));
    // Nothing of how it arrived is left in it.
    CHECK((flags_in({FrameKind::smb2, out}) & smb2::kArrivalFlags) == 0);
  }
}

TEST_CASE("seal: an encrypted request is encrypted behind the legs, and its answer on the way back") {
  Ends ends;
  const auto between = ends.near.open(arrived(encrypted(ends.client_out, frame_of(Command::read, 5))));
  REQUIRE(between.has_value());
  const Slice out = sent(ends.far, {between->bytes});
  std::byte* memory = nullptr;
  REQUIRE(ends.server_in.open(out.bytes().subspan(4), memory));
  const Slice answer = frame_of(Command::read, 5, smb2::header_flags::response, 70'000);
  const auto back = ends.far.open(arrived(encrypted(ends.server_out, answer)));
  REQUIRE(back.has_value());
  // In pieces, as the half sends data that it has.
  const Slice to_client =
      sent(ends.near, {back->bytes.sub(0, 10), back->bytes.sub(10, 500), back->bytes.from(510)});
  const auto plain = ends.client_in.open(to_client.bytes().subspan(4), memory);
  REQUIRE(plain);
  CHECK(
      std::equal(plain->bytes().begin(), plain->bytes().end(), answer.bytes().begin(), answer.bytes().end()));
}

TEST_CASE("seal: an answer made here is protected like its request") {
  for (const Form form : {Form::plain, Form::with_signature, Form::encrypted}) {
    Ends ends;
    const Slice request = frame_of(Command::read, 5);
    REQUIRE(ends.near
                .open(arrived(form == Form::encrypted        ? encrypted(ends.client_out, request)
                              : form == Form::with_signature ? with_signature(ends.client_signer, request)
                                                             : request))
                .has_value());
    const Slice answer = frame_of(Command::read, 5, smb2::header_flags::response, 5000);
    const Slice out = sent(ends.near, {answer.sub(0, 80), answer.from(80)});
    std::byte* memory = nullptr;
    CHECK(is_signed_by(ends.client_signer, out) == (form == Form::with_signature));
    CHECK((arrived(out).kind == FrameKind::smb2_transform) == (form == Form::encrypted));
    if (form == Form::encrypted) CHECK(ends.client_in.open(out.bytes().subspan(4), memory));
    if (form == Form::plain)
      CHECK(std::equal(out.bytes().begin(), out.bytes().end(), answer.bytes().begin()));
  }
}

TEST_CASE("seal: a request of ours is protected like the client's last one in that tree") {
  Ends ends;
  const Slice own = frame_of(Command::read, 6);
  CHECK(arrived(sent(ends.far, {own})).kind == FrameKind::smb2);
  const auto between = ends.near.open(arrived(encrypted(ends.client_out, frame_of(Command::read, 5))));
  (void)sent(ends.far, {between->bytes});
  CHECK(arrived(sent(ends.far, {own})).kind == FrameKind::smb2_transform);
}

TEST_CASE("seal: a forged message goes nowhere") {
  Ends ends;
  const Slice request = frame_of(Command::write, 5);
  for (const Slice& good :
       {with_signature(ends.client_signer, request), encrypted(ends.client_out, request)}) {
    for (std::size_t at = 30; at < good.size(); at += 7) {
      Buffer bytes(good.bytes().begin(), good.bytes().end());
      bytes[at] ^= std::byte{0x80};
      const auto opened = ends.near.open(arrived(Slice::copy_of(bytes)));
      // With another session's number it is nobody's message, and stays as it is.
      if (opened && opened->kind == FrameKind::smb2) CHECK(form_in(flags_in(*opened)) == Form::plain);
    }
  }
  CHECK(ends.near.open(arrived(with_signature(ends.server_signer, request))).error() ==
        smb::make_error_code(Error::forged));
  CHECK(ends.near.open(arrived(encrypted(ends.server_in, request))).error() ==
        smb::make_error_code(Error::forged));
}

TEST_CASE("seal: marks that a client sets itself mean nothing") {
  Ends ends(Signing::aes_gmac, true);
  const auto opened = ends.near.open(arrived(frame_of(Command::read, 5, flags_of(Form::encrypted))));
  CHECK(opened.error() == smb::make_error_code(Error::unprotected));
}

TEST_CASE("seal: an answer of the server that is weaker than its request goes nowhere") {
  Ends ends;
  for (const bool encrypts : {true, false}) {
    const smb2::MessageId id = encrypts ? 5 : 6;
    const Slice request = frame_of(Command::read, id);
    const auto between = ends.near.open(arrived(encrypts ? encrypted(ends.client_out, request)
                                                         : with_signature(ends.client_signer, request)));
    (void)sent(ends.far, {between->bytes});
    const Slice answer = frame_of(Command::read, id, smb2::header_flags::response);
    CHECK(ends.far.open(arrived(answer)).error() == smb::make_error_code(Error::unprotected));
    if (encrypts) CHECK_FALSE(ends.far.open(arrived(with_signature(ends.server_signer, answer))).has_value());
    CHECK(ends.far
              .open(arrived(encrypts ? encrypted(ends.server_out, answer)
                                     : with_signature(ends.server_signer, answer)))
              .has_value());
  }
}

TEST_CASE("seal: an answer with the number of another session is not taken for that of a protected request") {
  for (const bool encrypts : {true, false}) {
    Ends ends;
    REQUIRE(ends.far.begin(kAnother, ends.agreement, keys_of(201)));
    const Slice request = frame_of(Command::read, 5);
    const auto between = ends.near.open(arrived(encrypts ? encrypted(ends.client_out, request)
                                                         : with_signature(ends.client_signer, request)));
    (void)sent(ends.far, {between->bytes});
    for (const std::uint32_t flags : {0u, smb2::header_flags::is_signed}) {
      const Slice answer =
          frame_of(Command::read, 5, smb2::header_flags::response | flags, 100, Status::success, kNobodys);
      CHECK_FALSE(ends.far.open(arrived(answer)).has_value());
    }
    Signer another{ends.agreement.signing, keys_of(201).signing};
    const Slice theirs =
        frame_of(Command::read, 5, smb2::header_flags::response, 100, Status::success, kAnother);
    CHECK_FALSE(ends.far.open(arrived(with_signature(another, theirs))).has_value());
  }
}

TEST_CASE("seal: what arrives without a session is not given the protection of another's request") {
  Ends ends;
  REQUIRE(
      ends.near.open(arrived(with_signature(ends.client_signer, frame_of(Command::read, 5)))).has_value());
  (void)sent(ends.far, {frame_of(Command::read, 5, 0, 100, Status::success, kNobodys)});
  const Slice error = frame_of(Command::read, 5, smb2::header_flags::response, 9, Status::success, kNobodys);
  const auto between = ends.far.open(arrived(error));
  REQUIRE(between.has_value());
  const Slice out = sent(ends.near, {between->bytes});
  CHECK(std::equal(out.bytes().begin(), out.bytes().end(), error.bytes().begin()));
}

TEST_CASE("seal: a login beside a session with keys stays as it is") {
  Ends ends;
  const Slice login = frame_of(Command::session_setup, 5, 0, 100, Status::success, kNobodys);
  const auto opened = ends.near.open(arrived(login));
  REQUIRE(opened.has_value());
  CHECK(std::equal(login.bytes().begin(), login.bytes().end(), opened->bytes.bytes().begin()));
}

TEST_CASE(
    "seal: a LOGOFF that nobody asked for ends nothing, and what was protected never leaves without "
    "protection") {
  Ends ends;
  (void)ends.far.open(arrived(frame_of(Command::logoff, 77, smb2::header_flags::response, 4)));
  CHECK_FALSE(ends.far.empty());
  ends.far.end(kOurs);
  for (const bool encrypts : {true, false}) {
    const Slice request = frame_of(Command::write, 5 + encrypts);
    const auto between = ends.near.open(arrived(encrypts ? encrypted(ends.client_out, request)
                                                         : with_signature(ends.client_signer, request)));
    REQUIRE(between.has_value());
    CHECK(sent(ends.far, {between->bytes}).empty());
  }
}

TEST_CASE(
    "seal: numbers that are no session's, and unknown commands, stay in the message that they came in") {
  Ends ends;
  REQUIRE(ends.near.begin(kAnother, ends.agreement, keys_of(201)));
  for (const smb2::SessionId number : {kNobodys, kAnother}) {
    const auto between = ends.near.open(
        arrived(encrypted(ends.client_out, frame_of(Command{0xff}, 5, 0, 100, Status::success, number))));
    REQUIRE(between.has_value() == (number == kNobodys));
    if (!between) continue;
    std::byte* memory = nullptr;
    const Slice out = sent(ends.far, {between->bytes});
    const auto plain = ends.server_in.open(out.bytes().subspan(4), memory);
    REQUIRE(plain);
    CHECK(plain->bytes()[kFrameHeadBytes + 40] == std::byte(kNobodys));
    CHECK(plain->bytes()[kFrameHeadBytes + smb2::header_at::signature] == std::byte{0});
  }
}

TEST_CASE("seal: a session ends with the answer to LOGOFF, which is still protected") {
  Ends ends;
  const auto between =
      ends.near.open(arrived(with_signature(ends.client_signer, frame_of(Command::logoff, 5, 0, 4))));
  (void)sent(ends.far, {between->bytes});
  const Slice answer = frame_of(Command::logoff, 5, smb2::header_flags::response, 4);
  const auto back = ends.far.open(arrived(with_signature(ends.server_signer, answer)));
  CHECK(ends.far.empty());
  CHECK(is_signed_by(ends.client_signer, sent(ends.near, {back->bytes})));
  CHECK(ends.near.empty());
}

TEST_CASE("seal: messages of sessions without keys stay as they are") {
  Ends ends;
  ends.near.end(kOurs);
  const Slice request = with_signature(ends.client_signer, frame_of(Command::read, 5));
  const auto opened = ends.near.open(arrived(request));
  REQUIRE(opened.has_value());
  CHECK(std::equal(request.bytes().begin(), request.bytes().end(), opened->bytes.bytes().begin()));
  const Slice other = encrypted(ends.client_out, frame_of(Command::read, 6));
  CHECK(ends.near.open(arrived(other))->kind == FrameKind::smb2_transform);
}

TEST_CASE("seal: a request that is repeated goes nowhere") {
  for (const Signing signing : {Signing::hmac_sha256, Signing::aes_cmac, Signing::aes_gmac})
    for (const bool encrypts : {false, true}) {
      Ends ends(signing);
      const Slice write = frame_of(Command::write, 57);
      const Slice request =
          encrypts ? encrypted(ends.client_out, write) : with_signature(ends.client_signer, write);
      const auto between = ends.near.open(arrived(request));
      REQUIRE(between.has_value());
      (void)sent(ends.far, {between->bytes});
      CHECK(ends.near.open(arrived(request)).error() == kForged);
      // Also when it has its answer.
      const Slice answer = frame_of(Command::write, 57, smb2::header_flags::response);
      REQUIRE_FALSE(answered(ends, answer, encrypts));
      (void)sent(ends.near, {answer});
      CHECK(ends.near.open(arrived(request)).error() == kForged);
      // Encrypted again, or as another request.
      CHECK_FALSE(goes_through(ends, write, true));
      CHECK_FALSE(goes_through(ends, frame_of(Command::read, 57), encrypts));
      CHECK(goes_through(ends, frame_of(Command::read, 58), encrypts));
    }
}

TEST_CASE("seal: a request may be cancelled more than once") {
  Ends ends;
  CHECK(goes_through(ends, frame_of(Command::change_notify, 5)));
  for (int i = 0; i < 2; ++i) CHECK(goes_through(ends, frame_of(Command::cancel, 5, 0, 4)));
}

TEST_CASE("seal: requests before a session has keys use their numbers, too") {
  Ends ends;
  UsedIds used;
  used.note(arrived(frame_of(Command::echo, 3)));
  ends.near = Leg(Leg::To::client, std::move(used));
  REQUIRE(ends.near.open(arrived(frame_of(Command::echo, 4, 0, 4, Status::success, 0))).has_value());
  REQUIRE(ends.near.begin(kOurs, ends.agreement, keys_of(1)));
  CHECK_FALSE(goes_through(ends, frame_of(Command::read, 3)));
  CHECK_FALSE(goes_through(ends, frame_of(Command::read, 4)));
  CHECK(goes_through(ends, frame_of(Command::read, 5)));
}

TEST_CASE("seal: an answer to no request that the server has goes nowhere") {
  for (const Signing signing : {Signing::hmac_sha256, Signing::aes_cmac, Signing::aes_gmac})
    for (const bool encrypts : {false, true}) {
      Ends ends(signing);
      REQUIRE(goes_through(ends, frame_of(Command::read, 5), encrypts));
      // One of our own, which has the number of a request that the client sends later.
      (void)sent(ends.far, {frame_of(Command::read, 90)});
      const Slice answer = frame_of(Command::read, 90, smb2::header_flags::response);
      const Slice sealed =
          encrypts ? encrypted(ends.server_out, answer) : with_signature(ends.server_signer, answer);
      CHECK(ends.far.open(arrived(sealed)).has_value());
      CHECK(ends.far.open(arrived(sealed)).error() == kForged);
      // And what anybody can send.
      CHECK(ends.far.open(arrived(answer)).error() == kForged);
      for (const smb2::SessionId session : {kNobodys, smb2::SessionId{0}})
        CHECK(ends.far
                  .open(arrived(frame_of(Command::read, 91, smb2::header_flags::response, 100,
                                         Status::success, session)))
                  .error() == kForged);
      CHECK_FALSE(answered(ends, frame_of(Command::read, 5, smb2::header_flags::response), encrypts));
    }
}

TEST_CASE("seal: answers that come in several parts, unasked or late are accepted") {
  using smb2::header_flags::response;
  constexpr std::uint32_t kAsync = smb2::header_flags::async;
  Ends ends;
  REQUIRE(goes_through(ends, frame_of(Command::change_notify, 5)));
  REQUIRE(goes_through(ends, frame_of(Command::read, 6)));
  REQUIRE(goes_through(ends, frame_of(Command::cancel, 5, 0, 4)));
  // Servers do not sign these.
  for (int i = 0; i < 2; ++i)
    CHECK(ends.far.open(arrived(frame_of(Command::change_notify, 5, response | kAsync, 9, Status::pending)))
              .has_value());
  CHECK(ends.far
            .open(arrived(
                frame_of(Command::oplock_break, smb2::kUnsolicited, response, 24, Status::success, 0)))
            .has_value());
  CHECK_FALSE(answered(ends, frame_of(Command::change_notify, 5, response | kAsync, 9, Status(0xC0000120))));
  CHECK_FALSE(answered(ends, frame_of(Command::read, 6, response, 9, Status::pending)));
  CHECK(answered(ends, frame_of(Command::read, 6, response, 9)) == kForged);
}

TEST_CASE("seal: a login beside a session with keys begins another one") {
  Ends ends;
  const Slice login = frame_of(Command::session_setup, 5, 0, 100, Status::success, 0);
  (void)sent(ends.far, {ends.near.open(arrived(login))->bytes});
  REQUIRE(ends.far.begin(kAnother, ends.agreement, keys_of(201)));
  Signer another{ends.agreement.signing, keys_of(201).signing};
  const Slice accepted =
      frame_of(Command::session_setup, 5, smb2::header_flags::response, 8, Status::success, kAnother);
  CHECK(ends.far.open(arrived(with_signature(another, accepted))).has_value());
  CHECK(ends.far.open(arrived(with_signature(another, accepted))).error() == kForged);
}

TEST_CASE("seal: a tree that must be encrypted is no other one that gets its number later") {
  using smb2::header_flags::response;
  const auto connected = [](Ends& ends, smb2::MessageId id, std::uint32_t flags) {
    const Slice request = smb2::build_message(
        {.command = Command::tree_connect, .message_id = id, .session_id = kOurs}, Buffer(9));
    REQUIRE(ends.near.open(arrived(with_signature(ends.client_signer, request))).has_value());
    const Slice answer =
        frame_of(Command::tree_connect, id, response, tree_connect_answer_body(smb2::ShareType::disk, flags));
    CHECK_FALSE(sent(ends.near, {answer}).empty());
  };
  const auto may_sign = [](Ends& ends, smb2::MessageId id) {
    return ends.near.open(arrived(with_signature(ends.client_signer, frame_of(Command::read, id))))
        .has_value();
  };
  Ends strict;
  connected(strict, 1, smb2::share_flags::encrypt_data);
  CHECK_FALSE(may_sign(strict, 2));
  for (const bool says_so : {true, false}) {
    Ends ends;
    connected(ends, 1, smb2::share_flags::encrypt_data);
    if (says_so) {
      REQUIRE(ends.near.open(arrived(encrypted(ends.client_out, frame_of(Command::tree_disconnect, 2, 0, 4))))
                  .has_value());
      (void)sent(ends.near, {frame_of(Command::tree_disconnect, 2, response, 4)});
      CHECK(may_sign(ends, 3));
    } else {
      connected(ends, 4, 0);
      CHECK(may_sign(ends, 5));
    }
    connected(ends, 6, smb2::share_flags::encrypt_data);
    CHECK_FALSE(may_sign(ends, 7));
  }
}

TEST_CASE("seal: beside sessions with keys nothing passes that is no message of SMB 2, or compressed") {
  const auto other = [](std::uint8_t first, std::size_t size) {
    Buffer bytes(4 + size, std::byte{0});
    bytes[3] = std::byte(size);
    bytes[4] = std::byte(first);
    std::ranges::copy(as_bytes("SMB"), bytes.begin() + 5);
    return Slice::copy_of(bytes);
  };
  Ends ends;
  Leg none(Leg::To::client);
  for (const std::size_t size : {20, 100})
    for (const auto& [first, kind] :
         {std::pair{0xFC, FrameKind::smb2_compressed}, std::pair{0xFF, FrameKind::smb1}}) {
      const Frame frame{kind, other(static_cast<std::uint8_t>(first), size)};
      CHECK(ends.near.open(frame).error() == kUnprotected);
      CHECK(ends.far.open(frame).error() == kUnprotected);
      CHECK(sent(ends.near, {frame.bytes}).empty());
      CHECK(sent(ends.far, {frame.bytes}).empty());
      CHECK(none.open(frame).has_value());
      CHECK(sent(none, {frame.bytes}).size() == frame.bytes.size());
    }
  // The transform of a session without keys, and a keep-alive.
  CHECK(sent(ends.near, {other(0xFD, 100)}).size() == 104);
  const Slice keep_alive = Slice::copy_of(Buffer{std::byte{0x85}, {}, {}, {}});
  CHECK(ends.near.open({FrameKind::keep_alive, keep_alive}).has_value());
  CHECK(sent(ends.near, {keep_alive}).size() == 4);
}

TEST_CASE("seal: more trees or requests than are remembered end the connection") {
  const auto in_tree = [](smb2::MessageId id, smb2::TreeId tree) {
    return smb2::build_message({.command = Command::read,
                                .flags = flags_of(Form::plain),
                                .message_id = id,
                                .tree_id = tree,
                                .session_id = kOurs},
                               Buffer(1));
  };
  std::vector<Slice> out;
  Ends trees;
  for (smb2::TreeId tree = 0; tree < Leg::kMostTrees; ++tree)
    REQUIRE(trees.far.seal(in_tree(tree, tree), out));
  CHECK(trees.far.seal(in_tree(1 << 20, 0), out));
  CHECK(trees.far.seal(in_tree(1 << 20, Leg::kMostTrees), out).error() == kUnprotected);

  Ends encrypted_trees;
  const auto connect = [](smb2::TreeId tree) {
    return smb2::build_message(
        {.command = Command::tree_connect,
         .flags = smb2::header_flags::response,
         .tree_id = tree,
         .session_id = kOurs},
        tree_connect_answer_body(smb2::ShareType::disk, smb2::share_flags::encrypt_data).bytes);
  };
  for (smb2::TreeId tree = 0; tree < Leg::kMostTrees; ++tree)
    REQUIRE(encrypted_trees.near.seal(connect(tree), out));
  CHECK(encrypted_trees.near.seal(connect(Leg::kMostTrees), out).error() == kUnprotected);

  Ends requests;
  for (smb2::MessageId id = 0; id < Leg::kMostRequests; ++id) REQUIRE(requests.far.seal(in_tree(id, 1), out));
  CHECK(requests.far.seal(in_tree(Leg::kMostRequests, 1), out).error() == kUnprotected);
  // Sessions without keys go on as before.
  Leg none(Leg::To::server);
  for (smb2::MessageId id = 0; id <= Leg::kMostRequests; ++id)
    REQUIRE(none.seal(frame_of(Command::read, id, 0, 1, Status::success, kNobodys), out));
}
