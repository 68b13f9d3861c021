// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/login.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/seal/logins.h"

namespace longhaul::smb::seal {
namespace {

void tell(Login& login, const std::vector<LoginToken>& tokens) {
  for (const LoginToken& token : tokens)
    token.is_servers ? login.from_server(token.bytes) : login.from_client(token.bytes);
}

}  // namespace

TEST_CASE("a captured Kerberos login yields the server's sub-key, and before its answer the client's") {
  const auto tokens = captured("smbclient_kerberos");
  Login login(server_keys(kCapturedKeytab));
  CHECK(login.found() == nullptr);
  login.from_client(tokens[0].bytes);
  REQUIRE(login.found());
  CHECK(hex(login.found()->key) == kCapturedInitiatorKey);
  login.from_server(tokens[1].bytes);
  REQUIRE(login.found());
  CHECK(hex(login.found()->key) == kCapturedSessionKey);
  CHECK(login.found()->mechanism == Mechanism::kerberos);
  CHECK(login.found()->etype == EncryptionType::aes256_sha1);
  CHECK(login.found()->kvno == 1);
  CHECK(login.found()->user == "alice@LONGHAUL.TEST");
}

TEST_CASE("captured NTLM logins open with the user's hash, from a list or from a keytab") {
  for (const char* name : {"smbclient_ntlm", "impacket_ntlm", "linux_ntlm"})
    for (const auto& keys : {server_keys("", alice()), server_keys("", alice("longhaul\\")),
                             server_keys("", alice("other\\")), server_keys(kCapturedUserKeytab)}) {
      Login login(keys);
      tell(login, captured(name));
      REQUIRE(login.found());
      CHECK(login.found()->mechanism == Mechanism::ntlm);
      CHECK(login.found()->key.size() == 16);
      CHECK(login.found()->user.ends_with("\\alice"));
    }
}

TEST_CASE("a login that does not open says what is missing") {
  const auto missing = [](const std::shared_ptr<const ServerKeys>& keys, const std::string& name) {
    Login login(keys);
    tell(login, captured(name));
    CHECK(login.found() == nullptr);
    return login.missing();
  };
  const auto listed = server_keys(kCapturedKeytab, alice());
  const Missing no_user = missing(server_keys(kCapturedKeytab), "smbclient_ntlm");
  CHECK(no_user.reason == reasons::smb_ntlm_user);
  CHECK(no_user.detail == "there is no NTLM hash for LONGHAUL\\alice");
  const Missing wrong = missing(listed, "smbclient_wrong_password");
  CHECK(wrong.reason == reasons::smb_ntlm_user);
  CHECK(wrong.detail == "the NTLM hash for LONGHAUL\\alice does not match the login");
  CHECK(missing(listed, "smbclient_ntlmv1").reason == reasons::smb_old_ntlm);
  CHECK(missing(listed, "smbclient_anonymous").reason == reasons::smb_anonymous);
  const Missing no_key = missing(server_keys(kCapturedUserKeytab), "smbclient_kerberos");
  CHECK(no_key.reason == reasons::smb_ticket);
  CHECK(no_key.detail ==
        "the ticket for cifs/files.longhaul.test@LONGHAUL.TEST (aes256-cts-hmac-sha1-96, key version 1) "
        "matches "
        "no key of the keytab, which has key version 2 of that type");
}

TEST_CASE("a login with a changed ticket, authenticator or answer yields no key") {
  const auto tokens = captured("smbclient_kerberos");
  const auto keys = server_keys(kCapturedKeytab);
  // The last bytes of the request are the authenticator's, those of the answer its only content.
  for (const std::size_t from_end : {1u, 40u, 200u, 600u, 1000u}) {
    auto changed = tokens[0].bytes;
    changed[changed.size() - from_end] ^= std::byte{1};
    Login login(keys);
    login.from_client(changed);
    CHECK(login.found() == nullptr);
    CHECK(login.missing().reason != reasons::optimised);
  }
  auto answer = tokens[1].bytes;
  answer.back() ^= std::byte{1};
  Login login(keys);
  login.from_client(tokens[0].bytes);
  login.from_server(answer);
  CHECK(login.found() == nullptr);
}

TEST_CASE("mechanisms without a key for a proxy are named") {
  const auto keys = server_keys(kCapturedKeytab);
  const auto [digits, detail] = GENERATE(table<std::string, std::string>({
      {"600906062b06010505023000", "a malformed token"},
      {"600a06062b060105020530ff", "IAKerb"},
      {"4e45474f45585453", "NegoEx"},
      {"30820000", "an unknown mechanism"},
  }));
  Login login(keys);
  login.from_client(from_hex(digits));
  CHECK(login.missing().reason == reasons::smb_login);
  CHECK(login.missing().detail == "the client logged in with " + detail);
}

TEST_CASE("without keys nothing is read, and endless tokens are not read on") {
  Login none(nullptr);
  tell(none, captured("smbclient_kerberos"));
  CHECK(none.found() == nullptr);
  const auto tokens = captured("smbclient_kerberos");
  Login many(server_keys(kCapturedKeytab));
  for (int i = 0; i < 13; ++i) many.from_client(tokens[0].bytes);
  CHECK(many.found() == nullptr);
}

TEST_CASE("a keytab is refused wherever it is cut off, but between entries") {
  const Buffer whole = from_hex(kCapturedKeytab);
  std::size_t accepted = 0;
  for (std::size_t size = 2; size < whole.size(); ++size)
    accepted += ServerKeys::read({.name = "k", .content = Bytes(whole).first(size)}, {}).has_value();
  CHECK(accepted == 3);
  CHECK(ServerKeys::read({.name = "k", .content = as_bytes("-----BEGIN")}, {}).error().message ==
        "k is not a keytab.");
}

TEST_CASE("a list of hashes with a mistake names its line and nothing of its content") {
  const auto message = [](std::string_view text) {
    const auto keys = ServerKeys::read({}, {.name = "h", .content = as_bytes(text)});
    return keys ? std::string("accepted") : keys.error().message;
  };
  const std::string digits(32, 'a');
  CHECK(message("# users\n\nCORP\\bob:" + digits + "\r\n carol : " + digits) == "accepted");
  for (const std::string& wrong : std::initializer_list<std::string>{
           "bob", "bob:", ":" + digits, "bob:" + digits + "a", "a\\b\\c:" + digits})
    CHECK(message("x:" + digits + "\n" + wrong + "\n") ==
          "h has an invalid line 2: it must be user:hash or domain\\user:hash, with a hash of 32 hexadecimal "
          "digits.");
}

TEST_CASE("the key ring gives the keys of the narrowest network") {
  const auto address = [](std::uint8_t last) {
    modules::Address bytes{};
    bytes[15] = std::byte{last};
    return bytes;
  };
  std::vector<modules::ServerFiles> servers(2);
  for (auto& server : servers) {
    SecretBytes content(kCapturedKeytab.size() / 2);
    const Buffer keytab = from_hex(kCapturedKeytab);
    std::ranges::copy(keytab, content.data());
    server.files.push_back({.key = "keytab", .name = "k", .content = std::move(content)});
  }
  servers[0].addresses = {{address(0), 120}};
  servers[1].addresses = {{address(7), 128}};
  const auto secrets = KeyRing::read(servers);
  REQUIRE(secrets.has_value());
  const auto& ring = dynamic_cast<const KeyRing&>(**secrets);
  CHECK(ring.of(address(1)) != nullptr);
  CHECK(ring.of(address(7)) != nullptr);
  CHECK(ring.of(address(7)) != ring.of(address(1)));
  auto elsewhere = address(7);
  elsewhere[0] = std::byte{0x20};
  CHECK(ring.of(elsewhere) == nullptr);
}

}  // namespace longhaul::smb::seal
