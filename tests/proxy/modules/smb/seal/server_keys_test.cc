// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/server_keys.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/seal/names.h"
#include "tests/codecs/hex.h"
#include "tests/proxy/modules/smb/seal/captured_keys.h"

namespace longhaul::smb::seal {
namespace {

using Sentences = std::vector<std::string>;

std::shared_ptr<const ServerKeys> read_keytab(std::string_view digits) {
  const Buffer content = from_hex(digits);
  const auto keys = ServerKeys::read({.name = "k", .content = content}, {});
  REQUIRE(keys.has_value());
  return *keys;
}

// The captured keytab has an AES-256 key of 82 bytes, then two entries of 66.
const std::string kOnlyRc4 = "0502" + std::string(kCapturedKeytab.substr(2 * (2 + 82 + 66)));

}  // namespace

TEST_CASE("what a keytab holds is listed without its keys, and what it lacks is a warning") {
  const auto whole = read_keytab(kCapturedKeytab);
  CHECK(whole->lines() == Sentences{"FILES$@LONGHAUL.TEST, key version 1: aes128-cts-hmac-sha1-96 "
                                    "aes256-cts-hmac-sha1-96 arcfour-hmac"});
  CHECK(whole->warnings("k").empty());
  CHECK(read_keytab(kOnlyRc4)->warnings("k").at(0).starts_with(
      "k has only RC4 keys (arcfour-hmac) of the file server"));
  const auto users = read_keytab(kCapturedUserKeytab);
  CHECK(users->lines() == Sentences{"3 keys of users"});
  CHECK(users->warnings("k").at(0).starts_with("k has no key of a file server: neither cifs/HOST"));
  CHECK(users->warnings("").at(0).starts_with("There is no keytab, so sessions with a Kerberos login"));
}

TEST_CASE("holes in a keytab are skipped, and keys of other types are named") {
  const std::string hole = "fffffffc01020304";
  CHECK(read_keytab("0502" + hole + std::string(kCapturedKeytab.substr(4)))->all_keys().size() == 3);
  CHECK(read_keytab(std::string(kCapturedKeytab) + "00000000" + "ffff")->all_keys().size() == 3);
  // The type stands in front of the length of the key.
  std::string des3 = kOnlyRc4;
  des3.replace(des3.find("00170010"), 4, "0010");
  const auto other = read_keytab(des3);
  CHECK(other->all_keys().empty());
  CHECK(other->warnings("k").back() ==
        "k: the key of FILES$@LONGHAUL.TEST (etype 16) has an unsupported type and is not used.");
}

TEST_CASE("the hash of a user is found whatever the case, with the user's domain first") {
  const std::string one(32, '1'), two(32, '2');
  const std::string list = "CORP\\Zo\u00eb:" + one + "\nzo\u00cb:" + two + "\n";
  const auto keys = ServerKeys::read({}, {.name = "h", .content = as_bytes(list)});
  REQUIRE(keys.has_value());
  const auto first = [&](std::u16string_view user, std::u16string_view domain) {
    const auto found = (*keys)->hashes(user, domain);
    return found.empty() ? std::string() : hex(found.front()->hash.bytes);
  };
  CHECK(first(u"ZO\u00cb", u"corp") == one);
  CHECK(first(u"zo\u00eb", u"") == two);
  CHECK((*keys)->hashes(u"zo\u00eb", u"elsewhere").size() == 2);
  CHECK(first(u"zo\u00eb@corp.test", u"") == two);
  CHECK(first(u"zo", u"corp").empty());
}

TEST_CASE("names are shown without anything that controls a terminal") {
  CHECK(printable_name(std::u16string_view(u"a\x1b[2J\u202e\xd800z")) == "a?[2J??z");
  CHECK(printable_name(std::string_view("\xff"
                                        "ok\n")) == "\ufffdok?");
  CHECK(printable_name(std::u16string(500, u'x')).size() == 64);
  CHECK(upper(u"stra\u00dfe \u03c3\u044f\u0451\u0161") == u"STRA\u00dfE \u03a3\u042f\u0401\u0160");
}

}  // namespace longhaul::smb::seal
