// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/cmac.h"

#include <openssl/core_names.h>
#include <openssl/params.h>

#include <catch2/catch.hpp>
#include <random>

#include "tests/codecs/hex.h"

using namespace longhaul;
using namespace longhaul::smb::seal;

namespace {

Buffer code_of(Cmac& cmac, Bytes message) {
  cmac.update(message);
  const Cmac::Code code = cmac.finish();
  return Buffer(code.begin(), code.end());
}

Secret<16> key_of(const Buffer& bytes) {
  Secret<16> key;
  std::copy(bytes.begin(), bytes.end(), key.bytes.begin());
  return key;
}

// OpenSSL's own.
Buffer expected(const Secret<16>& key, Bytes message) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(EVP_MAC_fetch(nullptr, "CMAC", nullptr),
                                                              EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(EVP_MAC_CTX_new(mac.get()),
                                                                          EVP_MAC_CTX_free);
  char cipher[] = "AES-128-CBC";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, cipher, 0),
                               OSSL_PARAM_construct_end()};
  Buffer code(16);
  std::size_t size = 0;
  REQUIRE(EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(key.bytes.data()),
                       key.bytes.size(), params) == 1);
  REQUIRE(EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(message.data()),
                         message.size()) == 1);
  REQUIRE(EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(code.data()), &size, code.size()) ==
          1);
  return code;
}

}  // namespace

TEST_CASE("seal: AES-CMAC gives the codes of RFC 4493, section 4") {
  Cmac cmac(key_of(from_hex("2b7e151628aed2a6abf7158809cf4f3c")));
  const Buffer message = from_hex(
      "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
      "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
  CHECK(code_of(cmac, {}) == from_hex("bb1d6929e95937287fa37d129b756746"));
  CHECK(code_of(cmac, Bytes(message).first(16)) == from_hex("070a16b46b4d4144f79bdd9dd04a287c"));
  CHECK(code_of(cmac, Bytes(message).first(40)) == from_hex("dfa66747de9ae63030ca32611497c827"));
  CHECK(code_of(cmac, message) == from_hex("51f0bebf7e3b9d92fc49741779363cfe"));
}

TEST_CASE("seal: AES-CMAC of any message, in any pieces, is OpenSSL's") {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    Buffer message(i < 100 ? static_cast<std::size_t>(i) : random() % 20'000), bytes(16);
    for (std::byte& byte : message) byte = std::byte(random() & 0xFF);
    for (std::byte& byte : bytes) byte = std::byte(random() & 0xFF);
    const Secret<16> key = key_of(bytes);
    Cmac cmac(key);
    const Buffer right = expected(key, message);
    CAPTURE(i, message.size());
    CHECK(code_of(cmac, message) == right);
    for (Bytes rest = message; !rest.empty();) {
      const std::size_t most = random() % 2 ? 40 : 9000;
      const std::size_t size = std::min<std::size_t>(random() % most, rest.size());
      cmac.update(rest.first(size));
      rest = rest.subspan(size);
    }
    const Cmac::Code code = cmac.finish();
    CHECK(Buffer(code.begin(), code.end()) == right);
  }
}
