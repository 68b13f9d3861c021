// SPDX-License-Identifier: Apache-2.0
// A login from its NEGOTIATE on, as the module gives it to both halves' layers.
#include "proxy/modules/smb/seal/sealing.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/far.h"
#include "tests/proxy/modules/smb/seal/logins.h"

namespace longhaul::smb::seal {
namespace {

constexpr smb2::SessionId kOurs = 0x51;

// NEGOTIATE of 3.1.1, with a salt that the far half changes.
void put_salt(auto& out) {
  out.u16(1), out.u16(38), out.u32(0), out.u16(1), out.u16(32), out.u16(1), out.zeros(32);
}
Frame newest_request() {
  return framed({.command = smb2::Command::negotiate}, smb2::test::Body([](auto& out) {
                  out.u16(36), out.u16(1), out.u16(1), out.u16(0), out.u32(0), out.zeros(16);
                  out.u32(64 + 40), out.u16(1), out.u16(0), out.u16(0x0311), out.u16(0);
                  put_salt(out);
                }));
}
Frame newest_answer() {
  return framed({.command = smb2::Command::negotiate, .credits = 1, .flags = smb2::header_flags::response},
                smb2::test::Body([](auto& out) {
                  out.u16(65), out.u16(1), out.u16(0x0311), out.u16(1), out.zeros(16), out.u32(0);
                  out.u32(1 << 20), out.u32(1 << 20), out.u32(1 << 20), out.zeros(16);
                  out.u16(0), out.u16(0), out.u32(64 + 64);
                  put_salt(out);
                }));
}

struct FarLayer {
  explicit FarLayer(const std::string& hashes = alice(), const Frame& request = negotiate_request(),
                    const Frame& answer = negotiate_answer(smb2::Dialect::smb_2_1))
      : layer(server_keys("", hashes), half, unopened, {}) {
    (void)to_server(request);
    (void)from_server(answer);
  }
  std::optional<std::vector<Slice>> to_server(const Frame& frame) {
    return layer.to_lan(layer.from_stream(frame).bytes);
  }
  std::optional<Frame> from_server(const Frame& frame) { return layer.from_lan({}, frame, out); }
  // What the twin is told.
  std::vector<TwinMessage> told() {
    std::vector<TwinMessage> messages;
    while (auto output = out.poll())
      if (auto* message = std::get_if<modules::ToTwin>(&*output))
        messages.push_back(decode(message->message.bytes()).value());
    return messages;
  }
  Outputs out;
  smb2::Far half{out};
  std::shared_ptr<Unopened> unopened = std::make_shared<Unopened>();
  FarSealing layer;
};

Frame with_signature(Signer& signer, const Frame& frame) {
  std::byte* memory = nullptr;
  Slice copy = Slice::unfilled(frame.bytes.size(), memory);
  std::ranges::copy(frame.bytes.bytes(), memory);
  std::byte* const header = memory + kFrameHeadBytes;
  store_le(header + smb2::header_at::flags,
           load_le<std::uint32_t>(frame.message(), smb2::header_at::flags) | smb2::header_flags::is_signed);
  const Bytes body = frame.message().subspan(smb2::kHeaderBytes);
  std::ranges::copy(signer.sign({header, smb2::kHeaderBytes}, std::span(&body, 1)),
                    header + smb2::header_at::signature);
  return {FrameKind::smb2, std::move(copy)};
}

// The server's, by the key that it knows itself.
Signer servers_signer(const NtlmLogin& tokens) {
  Login login(server_keys("", alice()));
  login.from_client(tokens.first());
  login.from_server(tokens.challenge());
  login.from_client(tokens.second());
  REQUIRE(login.found());
  const Agreement agreement{.dialect = smb2::Dialect::smb_2_1};
  return Signer(agreement.signing, derive(agreement, login.found()->key, {}).signing);
}

}  // namespace

TEST_CASE("sealing: a login's last answer begins the session, once") {
  FarLayer far;
  const NtlmLogin login;
  Signer signer = servers_signer(login);
  (void)far.to_server(setup_request(1, 0, login.first()));
  REQUIRE(far.from_server(setup_answer(1, kOurs, Status::more_processing_required, login.challenge())));
  (void)far.to_server(setup_request(2, kOurs, login.second(), smb2::security_mode::signing_required));
  const Frame accepted = with_signature(signer, setup_answer(2, kOurs, Status::success, login.last()));
  REQUIRE(far.from_server(accepted));
  CHECK(far.layer.is_needed());

  auto told = far.told();
  REQUIRE(told.size() == 1);
  const auto& keys = std::get<SealKeys>(told[0]);
  CHECK(keys.session == kOurs);
  CHECK(keys.must_sign);  // as SESSION_SETUP demands, unlike NEGOTIATE
  CHECK(keys.signing_key.size() == 16);

  // The near half keeps no other copy of them.
  NearSealing near{UsedIds()};
  Outputs out;
  REQUIRE(near.takes(told[0], out));
  CHECK(near.is_needed());
  CHECK(std::ranges::all_of(keys.signing_key.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
  const Frame plain =
      framed({.command = smb2::Command::echo, .message_id = smb2::MessageId{3}, .session_id = kOurs},
             smb2::test::empty_body());
  CHECK_FALSE(near.from_lan({}, plain, out));
  CHECK(near.reason() == reasons::smb_unprotected);

  // Once more, from somebody who has recorded it.
  CHECK_FALSE(far.from_server(accepted));
  CHECK(far.layer.reason() == reasons::smb_forged);
}

TEST_CASE("sealing: a refused login is the reason until one is accepted") {
  for (const bool is_listed : {true, false}) {
    FarLayer far(is_listed ? alice() : "somebody:" + std::string(kCapturedHash) + "\n");
    NearSealing near{UsedIds()};
    Outputs out;
    const NtlmLogin login;
    Signer signer = servers_signer(login);
    (void)far.to_server(setup_request(1, 0, login.first()));
    const auto refusal = far.from_server(setup_answer(1, kOurs, Status::access_denied));
    REQUIRE(refusal);
    CHECK(far.layer.reason() == reasons::smb_login);
    auto told = far.told();
    REQUIRE(told.size() == 1);
    REQUIRE(near.takes(told[0], out));
    (void)near.from_stream(*refusal);
    CHECK(near.reason() == reasons::smb_login);

    (void)far.to_server(setup_request(2, 0, login.first()));
    (void)far.from_server(setup_answer(2, kOurs, Status::more_processing_required, login.challenge()));
    (void)far.to_server(setup_request(3, kOurs, login.second()));
    const auto accepted =
        far.from_server(with_signature(signer, setup_answer(3, kOurs, Status::success, login.last())));
    REQUIRE(accepted);
    CHECK(far.layer.reason() == reasons::optimised);  // then the half knows
    (void)near.from_stream(*accepted);
    CHECK(near.reason() == reasons::optimised);
  }
}

TEST_CASE("sealing: the twin is told why a login that cannot be opened resets its connection, before that") {
  FarLayer far("somebody:" + std::string(kCapturedHash) + "\n", newest_request(), newest_answer());
  REQUIRE(far.layer.is_needed());  // NEGOTIATE was changed
  const NtlmLogin login;
  (void)far.to_server(setup_request(1, 0, login.first()));
  (void)far.from_server(setup_answer(1, kOurs, Status::more_processing_required, login.challenge()));
  (void)far.to_server(setup_request(2, kOurs, login.second()));
  CHECK_FALSE(far.from_server(setup_answer(2, kOurs, Status::success, login.last())));
  CHECK(far.layer.reason() == reasons::smb_ntlm_user);
  const auto first = far.out.poll();
  REQUIRE(first);
  const auto* told = std::get_if<modules::ToTwin>(&*first);
  REQUIRE(told);
  const TwinMessage message = decode(told->message.bytes()).value();
  REQUIRE(std::holds_alternative<Unsealed>(message));
  CHECK(as_text(std::get<Unsealed>(message).reason.bytes()) == "smb_ntlm_user");
  const auto second = far.out.poll();
  REQUIRE(second);
  CHECK(std::holds_alternative<modules::Abort>(*second));
}

}  // namespace longhaul::smb::seal
