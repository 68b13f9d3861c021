// SPDX-License-Identifier: Apache-2.0
// The expected values were computed with another implementation (PyCryptodome's HMAC).
#include "proxy/modules/smb/seal/agreement.h"

#include <catch2/catch.hpp>

#include "tests/codecs/hex.h"

using namespace longhaul;
using namespace longhaul::smb::seal;
using longhaul::smb::smb2::Dialect;

namespace {

Buffer login_key() {
  Buffer key(32);
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = std::byte(i + 1);
  return key;
}

PreauthValue preauth() {
  PreauthValue value;
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = std::byte(7 * i & 255);
  return value;
}

SessionKeys keys(Dialect dialect, Cipher cipher) {
  return derive({.dialect = dialect, .signing = Signing::aes_cmac, .cipher = cipher}, login_key(), preauth());
}

Buffer copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

TEST_CASE("seal: 3.1.1 derives each key from the hash over NEGOTIATE") {
  const SessionKeys found = keys(Dialect::smb_3_1_1, Cipher::aes_128_gcm);
  CHECK(copy(found.signing.bytes) == from_hex("8f15c466eca4b5ec1157b20a661f4fb8"));
  CHECK(copy(found.to_server) == from_hex("67f271e55e29219106b6407a170ea2ae"));
  CHECK(copy(found.to_client) == from_hex("7699e510cc30603f0cc631b5a4ed28ea"));
}

TEST_CASE("seal: AES-256 takes the whole key of the login") {
  const SessionKeys found = keys(Dialect::smb_3_1_1, Cipher::aes_256_ccm);
  CHECK(copy(found.to_server) == from_hex("50773454d4e60ef325742ba41e33d5d0f1b23590b07b65646c54bdfe4a4ebc01"));
  CHECK(copy(found.to_client) == from_hex("c167530579cd5d532548b4322d22741ba82e5f16e7eae5af795d738c65f84a95"));
}

TEST_CASE("seal: 3.0 derives its keys from fixed texts") {
  const SessionKeys found = keys(Dialect::smb_3_0, Cipher::aes_128_ccm);
  CHECK(copy(found.signing.bytes) == from_hex("df3d10c804f8be22ba94d4a0576ec1d4"));
  CHECK(copy(found.to_server) == from_hex("8ff7ad999deba4160c9991d3a9c730f4"));
  CHECK(copy(found.to_client) == from_hex("e9fce4868a74b3b8c9f7c6d472593db8"));
}

TEST_CASE("seal: 2.1 signs with the first 16 bytes of the login's key, and a shorter key ends in zeros") {
  CHECK(copy(keys(Dialect::smb_2_1, Cipher::none).signing.bytes) == from_hex("0102030405060708090a0b0c0d0e0f10"));
  const SessionKeys shorter = derive({.dialect = Dialect::smb_2_1}, from_hex("0102"), {});
  CHECK(copy(shorter.signing.bytes) == from_hex("01020000000000000000000000000000"));
  CHECK(shorter.to_server.empty());
}
