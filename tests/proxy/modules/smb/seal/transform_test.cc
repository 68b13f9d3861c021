// SPDX-License-Identifier: Apache-2.0
// The encrypted messages were made with another implementation (PyCryptodome).
#include "proxy/modules/smb/seal/transform.h"

#include <catch2/catch.hpp>
#include <set>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/frames.h"
#include "tests/codecs/hex.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::seal;

namespace {

Buffer key_of(Cipher cipher) {
  Buffer key(key_bytes(cipher));
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = std::byte(i + 1);
  return key;
}

const Buffer kPlain = from_hex(
    "fe534d4240000100000000000d0001000900000000000000050000000000000"
    "0fffe000000000000090000000000000000000000000000000000000000000000"
    "04000000");

struct Known {
  Cipher cipher;
  const char* transform;
};
const Known kKnown[] = {
    {Cipher::aes_128_ccm,
     "fd534d42e9c748935a68bf7b0a2f1c255d36e280404142434445464748494a0000000000440000000000010009000000000000005322cea4c6"
     "e5c75da3edc8223f815532408d4cd865adc629f34c306a2199a82651005a5dd3a9b4556c0839d44f18b4589f77d148427c63d56510099fb092"
     "501a5abc3f32"},
    {Cipher::aes_128_gcm,
     "fd534d42ad76feeb06f92caafa5fb71fa77a3ed5404142434445464748494a4b00000000440000000000010009000000000000000bbf17ad64"
     "94519c631a677a402a0d7341359ec9932195cf8faa08717e7f9ab1164769fe06ee2796c5a562d2ec55abcef2d5c9a04f786e7c4d1eb41e174f"
     "384b4fe22e16"},
    {Cipher::aes_256_ccm,
     "fd534d4271d1856f9cf364534f79148e11804ec6404142434445464748494a000000000044000000000001000900000000000000edb8956102"
     "b5b1689c66d89cc34366fd15f303edc47df2b10d5a3aef3802e1dcfe7264fce0c98af4d49a3cea64cbb18b9214a812296014b38847d8f078dd"
     "c12e5fb8af82"},
    {Cipher::aes_256_gcm,
     "fd534d4260760a10262fc54a180b55214724517f404142434445464748494a4b0000000044000000000001000900000000000000"
     "24c791332f4f0d9ebc9d62a519761903b17931503432b89824fe71fdcfd58f92f118c335b672eab51fe2024d44117cc132a2bc2028a7"
     "3161ee91bf56ac11191c36fe556f"},
};

std::optional<Buffer> opened(Transform& transform, Bytes message) {
  std::byte* memory = nullptr;
  const auto frame = transform.open(message, memory);
  if (!frame) return std::nullopt;
  const Bytes plain = frame->bytes().subspan(kFrameHeadBytes);
  return Buffer(plain.begin(), plain.end());
}

}  // namespace

TEST_CASE("seal: what another implementation encrypted is read, and nothing that was changed") {
  for (const Known& known : kKnown) {
    Transform transform(known.cipher, key_of(known.cipher));
    const Buffer message = from_hex(known.transform);
    CHECK(opened(transform, message) == kPlain);
    for (std::size_t at = 4; at < message.size(); ++at) {
      Buffer other = message;
      other[at] ^= std::byte{0x10};
      CHECK_FALSE(opened(transform, other));
    }
    for (std::size_t size = 0; size < message.size(); ++size)
      CHECK_FALSE(opened(transform, Bytes(message).first(size)));
  }
}

TEST_CASE("seal: what is encrypted here is read, in any pieces, and no nonce comes twice") {
  for (const Known& known : kKnown) {
    Transform out(known.cipher, key_of(known.cipher)), in(known.cipher, key_of(known.cipher));
    std::set<Buffer> nonces;
    const Bytes plain = kPlain;
    for (int i = 0; i < 300; ++i) {
      const std::vector<Bytes> pieces{plain.first(64), plain.subspan(64, 0), plain.subspan(64)};
      const Slice frame = out.seal(9, pieces, plain.size());
      const Bytes message = frame.bytes().subspan(kFrameHeadBytes);
      const Bytes nonce = message.subspan(20, is_ccm(known.cipher) ? 11 : 12);
      CHECK(nonces.emplace(nonce.begin(), nonce.end()).second);
      CHECK(load_le<std::uint64_t>(message, 44) == 9);
      CHECK(opened(in, message) == kPlain);
    }
  }
}
