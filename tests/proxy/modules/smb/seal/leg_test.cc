// SPDX-License-Identifier: Apache-2.0
// Both legs of a connection, with keys of their own: what a client sends arrives at the server protected
// alike, and nothing that is forged or too weakly protected goes on.
#include "proxy/modules/smb/seal/leg.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/seal/legs.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::seal;
using namespace longhaul::smb::seal::legs;

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
    const smb2::MessageId id{encrypts ? 5u : 6u};
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
