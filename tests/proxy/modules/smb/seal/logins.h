// SPDX-License-Identifier: Apache-2.0
// Logins as messages: SESSION_SETUP with the tokens of captured logins (captured_keys.h), and what the tests
// of a login's followers say and hear before it.
#pragma once
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "proxy/modules/smb/seal/server_keys.h"
#include "tests/codecs/hex.h"
#include "tests/proxy/modules/smb/seal/captured_keys.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::seal {

struct LoginToken {
  bool is_servers = false;
  Buffer bytes;
};

inline std::vector<LoginToken> captured(const std::string& name) {
  std::ifstream file(LONGHAUL_SOURCE_DIR "/tests/fuzz/corpus/smb_login/" + name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<LoginToken> tokens;
  for (Bytes rest = as_bytes(text); rest.size() >= 3;) {
    const std::size_t size =
        std::to_integer<std::size_t>(rest[1]) << 8 | std::to_integer<std::size_t>(rest[2]);
    REQUIRE(rest.size() - 3 >= size);
    LoginToken token{.is_servers = rest[0] == std::byte{1}};
    append(token.bytes, rest.subspan(3, size));
    tokens.push_back(std::move(token));
    rest = rest.subspan(3 + size);
  }
  REQUIRE_FALSE(tokens.empty());
  return tokens;
}

inline std::shared_ptr<const ServerKeys> server_keys(std::string_view keytab,
                                                     const std::string& hashes = {}) {
  const Buffer content = from_hex(keytab);
  const auto keys =
      ServerKeys::read({.name = keytab.empty() ? "" : "test.keytab", .content = content},
                       {.name = hashes.empty() ? "" : "test.hashes", .content = as_bytes(hashes)});
  REQUIRE(keys.has_value());
  return *keys;
}

inline std::string alice(std::string_view domain = {}) {
  return std::string(domain) + "Alice:" + std::string(kCapturedHash) + "\n";
}

inline Frame framed(smb2::Header header, const smb2::test::Body& body) {
  return {FrameKind::smb2, smb2::build_message(header, body.bytes)};
}

inline Frame negotiate_request() {
  return framed({.command = smb2::Command::negotiate}, smb2::test::negotiate_request_body());
}
inline Frame negotiate_answer(smb2::Dialect dialect) {
  return framed({.command = smb2::Command::negotiate, .credits = 1, .flags = smb2::header_flags::response},
                smb2::test::negotiate_answer_body(dialect));
}

inline Frame setup_request(smb2::test::AnyId id, smb2::SessionId session, Bytes token,
                           std::uint16_t mode = smb2::security_mode::signing_enabled) {
  const smb2::test::Body body([&](auto& out) {
    out.u16(25), out.u8(0), out.u8(static_cast<std::uint8_t>(mode)), out.zeros(8);
    out.u16(smb2::kHeaderBytes + 24), out.u16(static_cast<std::uint16_t>(token.size())), out.zeros(8);
    out.bytes(token);
  });
  return framed(
      {.command = smb2::Command::session_setup, .credits = 1, .message_id = id, .session_id = session}, body);
}
inline Frame setup_answer(smb2::test::AnyId id, smb2::SessionId session, Status status, Bytes token = {}) {
  smb2::Header header{.command = smb2::Command::session_setup,
                      .credits = 1,
                      .flags = smb2::header_flags::response,
                      .message_id = id,
                      .session_id = session};
  header.status = status;
  if (status != Status::success && status != Status::more_processing_required)
    return framed(header, smb2::test::error_body());
  return framed(header, smb2::test::Body([&](auto& out) {
                  out.u16(9), out.u16(0), out.u16(smb2::kHeaderBytes + 8);
                  out.u16(static_cast<std::uint16_t>(token.size())), out.bytes(token);
                }));
}

// A login of two requests with NTLM: its tokens are the client's, the server's, the client's and perhaps the
// server's.
struct NtlmLogin {
  explicit NtlmLogin(const std::string& name = "smbclient_ntlm") : tokens(captured(name)) {
    REQUIRE(tokens.size() >= 3);
  }
  Bytes first() const { return tokens[0].bytes; }
  Bytes challenge() const { return tokens[1].bytes; }
  Bytes second() const { return tokens[2].bytes; }
  Bytes last() const { return tokens.size() > 3 ? Bytes(tokens[3].bytes) : Bytes(); }
  std::vector<LoginToken> tokens;
};

}  // namespace longhaul::smb::seal
