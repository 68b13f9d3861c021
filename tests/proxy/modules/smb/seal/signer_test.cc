// SPDX-License-Identifier: Apache-2.0
// The expected signatures were computed with another implementation (PyCryptodome).
#include "proxy/modules/smb/seal/signer.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/header.h"
#include "tests/codecs/hex.h"
#include "tests/proxy/modules/smb/smb2/ids.h"

using namespace longhaul;
using namespace longhaul::smb::seal;
using namespace longhaul::smb;

namespace {

Secret<16> key() {
  Secret<16> key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = std::byte(16 + i);
  return key;
}

Buffer header(smb2::Command command, std::uint32_t flags, smb2::test::AnyId id) {
  Buffer bytes;
  smb2::write_header({.credit_charge = 1, .command = command, .credits = 1, .flags = flags, .message_id = id,
                      .process_id = 0xFEFF, .session_id = 9},
                     bytes);
  return bytes;
}

const Buffer kBody = from_hex("04000000");
constexpr std::uint32_t kAnswer = smb2::header_flags::response | smb2::header_flags::is_signed;

}  // namespace

TEST_CASE("seal: signatures of all three algorithms are those of another implementation") {
  const Bytes body = kBody;
  const auto sign = [&](Signing signing, const Buffer& head) {
    const Signature found = Signer(signing, key()).sign(head, std::span(&body, 1));
    return Buffer(found.begin(), found.end());
  };
  const Buffer echo = header(smb2::Command::echo, kAnswer, 5);
  CHECK(sign(Signing::hmac_sha256, echo) == from_hex("e97d0c5db8341cf52fba8b18babce5bd"));
  CHECK(sign(Signing::aes_cmac, echo) == from_hex("2e37fbe41b2b794798e029a91e25c0aa"));
  CHECK(sign(Signing::aes_gmac, echo) == from_hex("b083f97b6b2da41f7747936d8db79bfc"));
  CHECK(sign(Signing::aes_gmac, header(smb2::Command::cancel, smb2::header_flags::is_signed, 6)) ==
        from_hex("5988b876e9c93c59652cd399902be980"));
}

TEST_CASE("seal: a signature fits its message and no other") {
  for (const Signing signing : {Signing::hmac_sha256, Signing::aes_cmac, Signing::aes_gmac}) {
    Signer signer(signing, key());
    Buffer head = header(smb2::Command::echo, kAnswer, 5);
    // In pieces or whole, and whatever the field has before.
    const std::vector<Bytes> pieces{Bytes(kBody).first(1), {}, Bytes(kBody).subspan(1)};
    const Signature signature = signer.sign(head, pieces);
    std::copy(signature.begin(), signature.end(), head.begin() + smb2::header_at::signature);
    CHECK(signer.verify(head, kBody));
    for (std::size_t at = 0; at < head.size(); ++at) {
      Buffer other = head;
      other[at] ^= std::byte{1};
      CHECK_FALSE(signer.verify(other, kBody));
    }
    CHECK_FALSE(signer.verify(head, from_hex("04000001")));
    CHECK_FALSE(signer.verify(head, from_hex("040000")));
  }
}
