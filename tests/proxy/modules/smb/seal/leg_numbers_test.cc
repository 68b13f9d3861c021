// SPDX-License-Identifier: Apache-2.0
// What a leg remembers of messages: numbers that are used, requests that wait for answers, trees; and its
// limits.
#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/seal/legs.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::seal;
using namespace longhaul::smb::seal::legs;

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

TEST_CASE(
    "seal: only an error that the session is gone answers an encrypted request of a session without keys") {
  using smb2::header_flags::response;
  const auto says = [](Ends& ends, Status status, smb2::SessionId session, std::uint64_t id) {
    return ends.far.open(arrived(frame_of(Command::create, id, response, 9, status, session)));
  };
  Ends ends;
  CHECK(says(ends, Status::user_session_deleted, kNobodys, 5).error() == kForged);
  // Its number is in what is encrypted.
  const Slice create = frame_of(Command::create, 5, 0, 100, Status::success, kNobodys);
  const Bytes message = create.bytes().subspan(kFrameHeadBytes);
  const Slice unknown = ends.client_out.seal(kNobodys, std::span(&message, 1), message.size());
  const auto between = ends.near.open(arrived(unknown));
  REQUIRE(between.has_value());
  CHECK(std::ranges::equal(sent(ends.far, {between->bytes}).bytes(), unknown.bytes()));

  const auto answer = says(ends, Status::user_session_deleted, kNobodys, 5);
  REQUIRE(answer.has_value());
  const Slice as_sent = frame_of(Command::create, 5, response, 9, Status::user_session_deleted, kNobodys);
  CHECK(std::ranges::equal(sent(ends.near, {answer->bytes}).bytes(), as_sent.bytes()));
  CHECK(says(ends, Status::network_session_expired, kNobodys, 6).has_value());
  // Anything else that names it, that error for others, and that error in place of the answer to another's
  // request.
  for (const Status status : {Status::success, Status::access_denied, Status::pending})
    CHECK(says(ends, status, kNobodys, 5).error() == kForged);
  for (const smb2::SessionId session : {kOurs, kAnother, smb2::SessionId{0}})
    CHECK(says(ends, Status::user_session_deleted, session, 5).error() == kForged);
  REQUIRE(goes_through(ends, frame_of(Command::read, 7)));
  const auto instead = says(ends, Status::user_session_deleted, kNobodys, 7);
  CHECK((!instead || form_in(flags_in(*instead)) == Form::plain));
}

TEST_CASE("seal: an answer that the session is gone passes as it is if its signature is not valid") {
  using smb2::header_flags::response;
  Signer other(Signing::aes_gmac, keys_of(201).signing);
  const auto answer = [&](Ends& ends, Status status, std::uint64_t id) {
    REQUIRE(goes_through(ends, frame_of(Command::create, id)));
    return ends.far.open(arrived(with_signature(other, frame_of(Command::create, id, response, 9, status))));
  };
  Ends ends;
  std::uint64_t id = 5;
  for (const Status status : {Status::user_session_deleted, Status::network_session_expired}) {
    const auto passed = answer(ends, status, id++);
    REQUIRE(passed.has_value());
    CHECK(form_in(flags_in(*passed)) == Form::plain);
    const Slice came = with_signature(other, frame_of(Command::create, id - 1, response, 9, status));
    CHECK(std::ranges::equal(sent(ends.near, {passed->bytes}).bytes(), came.bytes()));
  }
  CHECK(answer(ends, Status::access_denied, 20).error() == kForged);
  CHECK(answer(ends, Status::success, 21).error() == kForged);
  // A client's request never passes like that.
  const Slice request = frame_of(Command::create, 22, 0, 9, Status::user_session_deleted);
  CHECK(ends.near.open(arrived(with_signature(ends.server_signer, request))).error() == kForged);
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
  const auto connected = [](Ends& ends, smb2::test::AnyId id, std::uint32_t flags) {
    const Slice request = smb2::build_message(
        {.command = Command::tree_connect, .message_id = id, .session_id = kOurs}, Buffer(9));
    REQUIRE(ends.near.open(arrived(with_signature(ends.client_signer, request))).has_value());
    const Slice answer =
        frame_of(Command::tree_connect, id, response, tree_connect_answer_body(smb2::ShareType::disk, flags));
    CHECK_FALSE(sent(ends.near, {answer}).empty());
  };
  const auto may_sign = [](Ends& ends, smb2::test::AnyId id) {
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
  const auto in_tree = [](smb2::test::AnyId id, smb2::TreeId tree) {
    return smb2::build_message({.command = Command::read,
                                .flags = flags_of(Form::plain),
                                .message_id = id,
                                .tree_id = tree,
                                .session_id = kOurs},
                               Buffer(1));
  };
  std::vector<Slice> out;
  Ends trees;
  for (smb2::TreeId tree = 0; tree < Protection::kMostTrees; ++tree)
    REQUIRE(trees.far.seal(in_tree(tree, tree), out));
  CHECK(trees.far.seal(in_tree(1 << 20, 0), out));
  CHECK(trees.far.seal(in_tree(1 << 20, Protection::kMostTrees), out).error() == kUnprotected);

  Ends encrypted_trees;
  const auto connect = [](smb2::TreeId tree) {
    return smb2::build_message(
        {.command = Command::tree_connect,
         .flags = smb2::header_flags::response,
         .tree_id = tree,
         .session_id = kOurs},
        tree_connect_answer_body(smb2::ShareType::disk, smb2::share_flags::encrypt_data).bytes);
  };
  for (smb2::TreeId tree = 0; tree < Protection::kMostTrees; ++tree)
    REQUIRE(encrypted_trees.near.seal(connect(tree), out));
  CHECK(encrypted_trees.near.seal(connect(Protection::kMostTrees), out).error() == kUnprotected);

  Ends requests;
  for (std::uint64_t id = 0; id < Protection::kMostRequests; ++id)
    REQUIRE(requests.far.seal(in_tree(id, 1), out));
  CHECK(requests.far.seal(in_tree(Protection::kMostRequests, 1), out).error() == kUnprotected);
  // Sessions without keys go on as before.
  Leg none(Leg::To::server);
  for (std::uint64_t id = 0; id <= Protection::kMostRequests; ++id)
    REQUIRE(none.seal(frame_of(Command::read, id, 0, 1, Status::success, kNobodys), out));
}
