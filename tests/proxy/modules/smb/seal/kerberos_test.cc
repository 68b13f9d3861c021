// SPDX-License-Identifier: Apache-2.0
// Tickets of every encryption type, made here with MIT's library: a KDC of today issues only some of them.
// Captured ones are in login_test.cc.
#include <krb5.h>

#include <catch2/catch.hpp>
#include <string>

#include "proxy/modules/smb/seal/der.h"
#include "proxy/modules/smb/seal/handshake.h"
#include "proxy/modules/smb/seal/login.h"
#include "tests/proxy/modules/smb/seal/logins.h"

namespace longhaul::smb::seal {
namespace {

using Text = std::string;  // encoded ASN.1

Text element(std::uint8_t tag, const Text& content) {
  Text out(1, static_cast<char>(tag));
  if (content.size() < 0x80) {
    out += static_cast<char>(content.size());
  } else {
    out += static_cast<char>(0x82);
    out += static_cast<char>(content.size() >> 8);
    out += static_cast<char>(content.size() & 0xff);
  }
  return out + content;
}
Text tagged(unsigned number, const Text& content) { return element(der::context(number), content); }
Text small_integer(unsigned value) { return element(der::kInteger, Text(1, static_cast<char>(value))); }
Text octets(const Text& content) { return element(der::kOctetString, content); }
Text general_string(const Text& content) { return element(der::kGeneralString, content); }
Text sequence(const Text& content) { return element(der::kSequence, content); }
Text message(unsigned tag, const Text& content) { return element(der::application(tag), sequence(content)); }
Text principal(const Text& name) {
  return sequence(tagged(0, small_integer(1)) + tagged(1, sequence(general_string(name))));
}

struct MadeKey {
  EncryptionType type;
  Text bytes;
  Text encoded() const {
    return sequence(tagged(0, small_integer(static_cast<unsigned>(type))) + tagged(1, octets(bytes)));
  }
};
MadeKey made_key(EncryptionType type, char filled_with) { return {type, Text(key_bytes(type), filled_with)}; }

Text sealed(const MadeKey& key, krb5_keyusage usage, const Text& plain, unsigned kvno = 0) {
  krb5_keyblock block{};
  block.enctype = static_cast<krb5_enctype>(key.type);
  block.length = static_cast<unsigned>(key.bytes.size());
  block.contents = const_cast<krb5_octet*>(reinterpret_cast<const krb5_octet*>(key.bytes.data()));
  std::size_t size = 0;
  REQUIRE(krb5_c_encrypt_length(nullptr, block.enctype, plain.size(), &size) == 0);
  Text cipher(size, '\0');
  krb5_data in{};
  in.data = const_cast<char*>(plain.data());
  in.length = static_cast<unsigned>(plain.size());
  krb5_enc_data out{};
  out.ciphertext.data = cipher.data();
  out.ciphertext.length = static_cast<unsigned>(size);
  REQUIRE(krb5_c_encrypt(nullptr, &block, usage, nullptr, &in, &out) == 0);
  return sequence(tagged(0, small_integer(static_cast<unsigned>(key.type))) +
                  (kvno ? tagged(1, small_integer(kvno)) : Text()) + tagged(2, octets(cipher)));
}

struct Made {
  MadeKey service, session;
  std::optional<MadeKey> initiator, acceptor;
  unsigned kvno = 3;
  char options = 0;
  Text valid_until;

  static Text framed(const Text& type, const Text& content) {
    return element(der::application(0), "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" + type + content);
  }
  Text request() const {
    const Text part =
        message(3, tagged(0, element(der::kBitString, Text(5, '\0'))) + tagged(1, session.encoded()) +
                       tagged(2, general_string("A.TEST")) + tagged(3, principal("bob")) +
                       (valid_until.empty() ? Text() : tagged(7, element(0x18, valid_until))));
    const Text said = message(2, tagged(0, small_integer(5)) + tagged(1, general_string("A.TEST")) +
                                     tagged(2, principal("bob")) + tagged(4, small_integer(1)) +
                                     (initiator ? tagged(6, initiator->encoded()) : Text()));
    const Text ticket = message(
        1, tagged(0, small_integer(5)) + tagged(1, general_string("B.TEST")) +
               tagged(2, sequence(
                             tagged(0, small_integer(2)) +
                             tagged(1, sequence(general_string("cifs") + general_string("files.b.test"))))) +
               tagged(3, sealed(service, 2, part, kvno)));
    return framed(Text("\x01\0", 2),
                  message(14, tagged(0, small_integer(5)) + tagged(1, small_integer(14)) +
                                  tagged(2, element(der::kBitString, Text{'\0', options, '\0', '\0', '\0'})) +
                                  tagged(3, ticket) + tagged(4, sealed(session, 11, said))));
  }
  Text reply() const {
    const Text part = message(27, tagged(0, general_string("20261123")) + tagged(1, small_integer(1)) +
                                      (acceptor ? tagged(2, acceptor->encoded()) : Text()));
    return framed(Text("\x02\0", 2), message(15, tagged(0, small_integer(5)) + tagged(1, small_integer(15)) +
                                                     tagged(2, sealed(session, 12, part))));
  }
};

// What a server says of a ticket that it refuses.
Text krb_error(unsigned code) {
  return Made::framed(
      Text("\x03\0", 2),
      message(30, tagged(0, small_integer(5)) + tagged(1, small_integer(30)) +
                      tagged(4, element(0x18, "20261123080910Z")) + tagged(5, small_integer(1)) +
                      tagged(6, small_integer(code)) + tagged(9, general_string("B.TEST"))));
}

// A keytab with an entry for each key and its version.
struct KeytabEntry {
  MadeKey key;
  unsigned kvno = 1;
  Text account = "FILES$";
};

Text keytab_of(const std::vector<KeytabEntry>& keys) {
  const auto big16 = [](std::size_t value) {
    return Text{static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
  };
  Text file = "\x05\x02";
  for (const auto& [key, kvno, account] : keys) {
    const Text entry = big16(1) + big16(6) + "B.TEST" + big16(account.size()) + account + Text(8, '\0') +
                       static_cast<char>(kvno) + big16(static_cast<std::size_t>(key.type)) +
                       big16(key.bytes.size()) + key.bytes;
    file += big16(0) + big16(entry.size()) + entry;
  }
  return file;
}

std::shared_ptr<const ServerKeys> keys_of(const std::vector<KeytabEntry>& keys) {
  const Text file = keytab_of(keys);
  const auto read = ServerKeys::read({.name = "made.keytab", .content = as_bytes(file)}, {});
  REQUIRE(read.has_value());
  return *read;
}

constexpr EncryptionType kAllTypes[] = {EncryptionType::aes128_sha1, EncryptionType::aes256_sha1,
                                        EncryptionType::aes128_sha256, EncryptionType::aes256_sha384,
                                        EncryptionType::rc4};

}  // namespace

TEST_CASE("tickets of each encryption type open, with session and sub-keys of each other type") {
  for (const EncryptionType of_service : kAllTypes)
    for (const EncryptionType of_session : kAllTypes) {
      const Made made{.service = made_key(of_service, 's'),
                      .session = made_key(of_session, 't'),
                      .initiator = made_key(of_session, 'i'),
                      .acceptor = made_key(EncryptionType::aes256_sha1, 'a')};
      Login login(keys_of({{made.service, 3}}));
      login.from_client(as_bytes(made.request()));
      REQUIRE(login.found());
      CHECK(as_text(login.found()->key) == made.initiator->bytes);
      CHECK(login.found()->etype == of_service);
      CHECK(login.found()->user == "bob@A.TEST");
      login.from_server(as_bytes(made.reply()));
      REQUIRE(login.found());
      CHECK(as_text(login.found()->key) == made.acceptor->bytes);
    }
}

TEST_CASE("without sub-keys the ticket's own key is the session's") {
  Made made{.service = made_key(EncryptionType::rc4, 's'), .session = made_key(EncryptionType::rc4, 't')};
  Login login(keys_of({{made.service, 1}}));
  login.from_client(as_bytes(made.request()));
  login.from_server(as_bytes(made.reply()));
  REQUIRE(login.found());
  CHECK(as_text(login.found()->key) == made.session.bytes);
}

TEST_CASE("of several key versions the ticket's is used, and any other that opens it") {
  const MadeKey old_key = made_key(EncryptionType::aes256_sha1, 'o'),
                new_key = made_key(EncryptionType::aes256_sha1, 'n');
  const auto keys = keys_of({{old_key, 2}, {new_key, 3}});
  const auto version = [&](const MadeKey& key, unsigned kvno) {
    const Made made{.service = key, .session = made_key(EncryptionType::aes128_sha1, 't'), .kvno = kvno};
    Login login(keys);
    login.from_client(as_bytes(made.request()));
    return login.found() ? login.found()->kvno : 0;
  };
  CHECK(version(old_key, 2) == 2);
  CHECK(version(new_key, 3) == 3);
  CHECK(version(new_key, 2) == 3);
  CHECK(version(old_key, 0) == 2);
  CHECK(version(made_key(EncryptionType::aes256_sha1, 'x'), 3) == 0);
}

TEST_CASE("a later ticket of the same login replaces the earlier one, whether or not it opens") {
  const MadeKey key = made_key(EncryptionType::aes256_sha1, 's');
  const Made first{.service = key, .session = made_key(EncryptionType::aes256_sha1, '1')};
  const Made second{.service = key, .session = made_key(EncryptionType::aes256_sha1, '2')};
  const Made foreign{.service = made_key(EncryptionType::aes256_sha1, 'x'), .session = first.session};
  const Made to_user{.service = key, .session = first.session, .options = 0x40};
  Login login(keys_of({{key, 3}}));
  login.from_client(as_bytes(first.request()));
  login.from_client(as_bytes(second.request()));
  REQUIRE(login.found());
  CHECK(as_text(login.found()->key) == second.session.bytes);
  login.from_client(as_bytes(foreign.request()));
  CHECK(login.found() == nullptr);
  CHECK(login.missing().reason == reasons::smb_ticket);
  login.from_client(as_bytes(to_user.request()));
  CHECK(login.missing().detail == "the client logged in with a Kerberos user-to-user ticket");
}

TEST_CASE("a ticket is tried with at most a few keys, those of its host first") {
  std::vector<KeytabEntry> many;
  for (int i = 0; i < 60; ++i)
    many.push_back({.key = made_key(EncryptionType::aes128_sha1, static_cast<char>('A' + i)),
                    .account = "HOST" + std::to_string(i) + "$"});
  const auto strangers = keys_of(many);
  CHECK(strangers->keys(EncryptionType::aes128_sha1, 1, "cifs/a@B").size() == ServerKeys::kMostTries);
  CHECK(strangers->keys(EncryptionType::aes256_sha1, 1, "cifs/a@B").empty());
  const Made made{.service = made_key(EncryptionType::aes128_sha1, '!'),
                  .session = made_key(EncryptionType::aes128_sha1, 't'),
                  .kvno = 1};
  many.push_back({.key = made.service, .kvno = 9});
  Login login(keys_of(many));
  login.from_client(as_bytes(made.request()));
  REQUIRE(login.found());
  CHECK(login.found()->kvno == 9);
}

TEST_CASE("a server that refuses a ticket says why, and a client may try once more") {
  const Made made{.service = made_key(EncryptionType::aes128_sha1, 's'),
                  .session = made_key(EncryptionType::aes128_sha1, 't')};
  Login login(keys_of({{.key = made.service}}));
  for (const auto& [code, detail] : std::vector<std::pair<unsigned, std::string>>{
           {37, "the server refused the ticket of bob@A.TEST because the clocks differ too much"},
           {33, "by the server's clock, the ticket of bob@A.TEST is not valid yet"},
           {32, "by the server's clock, the ticket of bob@A.TEST has expired"},
           {41, "the server refused the client's ticket: Kerberos error 41"}}) {
    login.from_client(as_bytes(made.request()));
    REQUIRE(login.found());
    CHECK_FALSE(login.is_refused());
    login.from_server(as_bytes(krb_error(code)));
    CHECK(login.found() == nullptr);
    CHECK(login.is_refused());
    CHECK(login.missing().reason == (code == 41 ? reasons::smb_login : reasons::smb_clock));
    CHECK(login.missing().detail == detail);
  }
  login.from_client(as_bytes(made.request()));
  login.from_server(as_bytes(made.reply()));
  CHECK(login.found());
  // Cut off anywhere, it says nothing.
  const Text whole = krb_error(37);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    login.from_client(as_bytes(made.request()));
    login.from_server(as_bytes(whole).first(size));
    CHECK(login.missing().reason != reasons::smb_clock);
  }
}

TEST_CASE("every login that the server refuses is reported with its reason") {
  const Made made{.service = made_key(EncryptionType::aes128_sha1, 's'),
                  .session = made_key(EncryptionType::aes128_sha1, 't'),
                  .valid_until = "20261127091645Z"};
  Handshake handshake(keys_of({{.key = made.service}}));
  (void)handshake.from_client(negotiate_request());
  (void)handshake.from_server(negotiate_answer(smb2::Dialect::smb_2_1));
  std::uint64_t id = 1;
  const auto said = [&](Status status, const Text& token) {
    (void)handshake.from_client(setup_request(id, 0x51, as_bytes(made.request())));
    return handshake.from_server(setup_answer(id++, 0x51, status, as_bytes(token))).refused;
  };
  for (const unsigned code : {37u, 33u, 32u, 31u}) {
    const auto refused = said(Status::more_processing_required, krb_error(code));
    REQUIRE(refused);
    CHECK(refused->reason == (code == 31 ? reasons::smb_login : reasons::smb_clock));
  }
  const auto refused = said(Status::access_denied, {});
  REQUIRE(refused);
  CHECK(refused->reason == reasons::smb_login);
  CHECK(
      refused->detail ==
      "the server refused the login of bob@A.TEST, whose ticket is valid until 20261127091645Z, with status "
      "0xc0000022");
  CHECK_FALSE(said(Status::success, made.reply()));
}

TEST_CASE("a server that answers a ticket with another mechanism leaves the login without a key") {
  const Made made{.service = made_key(EncryptionType::rc4, 's'),
                  .session = made_key(EncryptionType::rc4, 't')};
  for (const Text& answer : {Text("NTLMSSP\0\2\0\0\0", 12), Text("NEGOEXTS"), Text("\x6f\x00", 2)}) {
    Login login(keys_of({{.key = made.service}}));
    login.from_client(as_bytes(made.request()));
    REQUIRE(login.found());
    login.from_server(as_bytes(answer));
    CHECK(login.found() == nullptr);
    CHECK(login.missing().reason == reasons::smb_login);
  }
}

}  // namespace longhaul::smb::seal
