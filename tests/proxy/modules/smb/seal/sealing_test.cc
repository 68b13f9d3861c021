// SPDX-License-Identifier: Apache-2.0
// A login from its NEGOTIATE on, as the module gives it to both halves' layers.
#include "proxy/modules/smb/seal/sealing.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/far.h"
#include "tests/proxy/modules/smb/seal/logins.h"

namespace longhaul::smb::seal {
namespace {

constexpr smb2::SessionId kOurs = 0x51;

struct FarLayer {
  explicit FarLayer(const std::string& hashes = alice())
      : layer(server_keys("", hashes), half, unopened, {}) {
    (void)to_server(negotiate_request());
    (void)from_server(negotiate_answer(smb2::Dialect::smb_2_1));
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
  const Frame plain = framed({.command = smb2::Command::echo, .message_id = 3, .session_id = kOurs},
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

}  // namespace longhaul::smb::seal
