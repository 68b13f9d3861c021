// SPDX-License-Identifier: Apache-2.0
// Keys and salts that tests know.
#pragma once
#include "cache/dictionary_key.h"

namespace longhaul::cache::test {

inline DictionaryKey known_key(unsigned first = 0x40) {
  Secret<DictionaryKey::kBytes> bytes;
  for (std::byte& byte : bytes.bytes) byte = std::byte(first++ & 0xff);
  return DictionaryKey(bytes);
}

inline Salt known_salt(unsigned first = 0x80) {
  Salt salt;
  for (std::byte& byte : salt) byte = std::byte(first++ & 0xff);
  return salt;
}

}  // namespace longhaul::cache::test
