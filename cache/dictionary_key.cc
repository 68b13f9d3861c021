// SPDX-License-Identifier: Apache-2.0
#include "cache/dictionary_key.h"

#include <openssl/objects.h>
#include <openssl/rand.h>

#include "cache/error.h"
#include "crypto/hkdf.h"

namespace longhaul::cache {

Result<Salt> draw_salt() {
  Salt salt;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(salt.data()), static_cast<int>(salt.size())) != 1)
    return make_error_code(StoreError::no_randomness);
  return salt;
}

std::unique_ptr<Aead> DictionaryKey::cipher(std::string_view magic, const Salt& salt, Aead::Use use) const {
  Secret<32> key;
  hkdf(salt, bytes_.bytes, as_bytes(magic), key.bytes);
  return make_aead(NID_aes_256_gcm,
                   {reinterpret_cast<const unsigned char*>(key.bytes.data()), key.bytes.size()}, use);
}

std::array<unsigned char, 12> part_nonce(std::uint32_t part) {
  std::array<unsigned char, 12> nonce{};
  for (std::size_t i = 0; i < 4; ++i) nonce[11 - i] = static_cast<unsigned char>(part >> 8 * i & 0xff);
  return nonce;
}

}  // namespace longhaul::cache
