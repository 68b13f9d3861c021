// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/ntlm.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "codecs/little_endian.h"
#include "tests/codecs/hex.h"

namespace longhaul::smb::seal {
namespace {

// [MS-NLMP] 4.2.1 and 4.2.4: user "User", domain "Domain", password "Password".
const std::string kNtHash = "a4f49c406510bdcab6824ee7c30fd852";
const std::string kChallenge = "0123456789abcdef";
// 4.2.4.3
const std::string kAuthenticate =
    "4e544c4d53535000030000001800180"
    "06c00000054005400840000000c000c00480000000800080054000000100010005c00000010001000d8000000358288e20501280"
    "a0000000f"
    "44006f006d00610069006e00550073006500720043004f004d005000550054004500520086c35097ac9cec102554764a57cccc19"
    "aaaaaaaa"
    "aaaaaaaa68cd0ab851e51c96aabc927bebef6a1c01010000000000000000000000000000aaaaaaaaaaaaaaaa0000000002000c00"
    "44006f00"
    "6d00610069006e0001000c005300650072007600650072000000000000000000c5dad2544fc9799094ce1ce90bc9d03e";
const std::string kSessionKey = "55555555555555555555555555555555";

NtlmChallenge challenge() {
  NtlmChallenge bytes;
  std::memcpy(bytes.data(), from_hex(kChallenge).data(), bytes.size());
  return bytes;
}

NtHash hash(const std::string& digits) {
  NtHash hash;
  std::memcpy(hash.bytes.data(), from_hex(digits).data(), hash.bytes.size());
  return hash;
}

}  // namespace

TEST_CASE("the session key of the published NTLMv2 login is found") {
  const auto message = from_hex(kAuthenticate);
  const auto authenticate = parse_ntlm_authenticate(message);
  REQUIRE(authenticate);
  CHECK(authenticate->user_name() == u"User");
  CHECK(authenticate->domain_name() == u"Domain");
  // The published hash is NTOWFv1 of "Password" (4.2.2.1.2).
  const auto key = ntlm_key(challenge(), *authenticate, hash(kNtHash));
  REQUIRE(key);
  CHECK(hex(Bytes(*key)) == kSessionKey);
}

TEST_CASE("a wrong hash, challenge, name or proof yields no NTLM key") {
  const auto message = from_hex(kAuthenticate);
  const auto authenticate = parse_ntlm_authenticate(message);
  REQUIRE(authenticate);
  CHECK_FALSE(ntlm_key(challenge(), *authenticate, hash("00000000000000000000000000000000")));
  NtlmChallenge other = challenge();
  other[7] ^= std::byte{1};
  CHECK_FALSE(ntlm_key(other, *authenticate, hash(kNtHash)));
  for (const std::size_t at : {std::size_t{72}, std::size_t{84}, std::size_t{132}, std::size_t{150}}) {
    auto changed = from_hex(kAuthenticate);
    changed[at] ^= std::byte{2};
    const auto parsed = parse_ntlm_authenticate(changed);
    REQUIRE(parsed);
    CHECK_FALSE(ntlm_key(challenge(), *parsed, hash(kNtHash)));
  }
}

TEST_CASE("an NTLM message that was cut off anywhere is refused or yields no key") {
  const auto message = from_hex(kAuthenticate);
  for (std::size_t size = 0; size < message.size(); ++size) {
    const auto parsed = parse_ntlm_authenticate(Bytes(message).first(size));
    CHECK((!parsed || !ntlm_key(challenge(), *parsed, hash(kNtHash))));
  }
}

}  // namespace longhaul::smb::seal
