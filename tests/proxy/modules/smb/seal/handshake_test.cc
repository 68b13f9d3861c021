// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/handshake.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/seal/logins.h"

namespace longhaul::smb::seal {
namespace {

// After a NEGOTIATE that demands no signatures.
struct Followed {
  Followed() {
    (void)handshake.from_client(negotiate_request());
    (void)handshake.from_server(negotiate_answer(smb2::Dialect::smb_3_0_2));
  }
  void begin(smb2::test::AnyId id, smb2::SessionId session, std::uint16_t mode = 1) {
    (void)handshake.from_client(setup_request(id, 0, login.first(), mode));
    (void)handshake.from_server(
        setup_answer(id, session, Status::more_processing_required, login.challenge()));
  }
  Handshake::Answer finish(smb2::test::AnyId id, smb2::SessionId session, std::uint16_t mode = 1) {
    (void)handshake.from_client(setup_request(id, session, login.second(), mode));
    return handshake.from_server(setup_answer(id, session, Status::success, login.last()));
  }
  NtlmLogin login;
  Handshake handshake{server_keys("", alice())};
};

}  // namespace

TEST_CASE("handshake: a login that demands signatures gets them, whatever NEGOTIATE says") {
  for (const auto& [first, second] : {std::pair<std::uint16_t, std::uint16_t>{1, 1}, {2, 2}, {3, 1}, {1, 2}}) {
    Followed followed;
    CHECK_FALSE(followed.handshake.agreement().must_sign);
    followed.begin(1, 0x51, first);
    const auto answer = followed.finish(2, 0x51, second);
    REQUIRE(answer.session);
    CHECK(answer.session->agreement.must_sign == (first != 1 || second != 1));
    CHECK(answer.session->agreement.dialect == smb2::Dialect::smb_3_0_2);
    // Only of this session.
    CHECK_FALSE(followed.handshake.agreement().must_sign);
  }
}

TEST_CASE("handshake: logins that clients abandon do not keep later ones from being followed") {
  for (const bool is_answered : {true, false}) {
    Followed followed;
    followed.begin(1, 0x51);
    for (std::uint64_t id = 100; id < 100 + Handshake::kMostLogins - 1; ++id) {
      if (is_answered)
        followed.begin(id, 0x1000 + id);
      else
        (void)followed.handshake.from_client(setup_request(id, 0, followed.login.first()));
    }
    CHECK(followed.finish(2, 0x51).session);  // not the oldest one too many
    followed.begin(3, 0x52);
    for (std::uint64_t id = 1000; id < 1000 + 2 * Handshake::kMostLogins; ++id)
      followed.begin(id, 0x10000 + id);
    followed.begin(4, 0x53);
    const auto answer = followed.finish(5, 0x53);
    CHECK(answer.session);
    CHECK_FALSE(answer.missing);
    // The one that waited longest.
    CHECK(followed.finish(6, 0x52).missing);
  }
}

}  // namespace longhaul::smb::seal
