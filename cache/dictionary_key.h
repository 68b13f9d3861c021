// SPDX-License-Identifier: Apache-2.0
// The key that encrypts everything in the directory, and how each file and record gets its own key from it
// (FORMAT.md, section 3). key_file.h stores it.
#pragma once
#include <array>
#include <memory>
#include <string_view>

#include "codecs/result.h"
#include "crypto/aead.h"
#include "crypto/secret.h"

namespace longhaul::cache {

// Random, and different for every file and record: under the resulting key each part's number is used as a
// nonce once.
using Salt = std::array<std::byte, 32>;
Result<Salt> draw_salt();

class DictionaryKey {
 public:
  static constexpr std::size_t kBytes = 32;
  explicit DictionaryKey(const Secret<kBytes>& bytes) : bytes_(bytes) {}

  // AES-256-GCM for a file or record that begins with this magic, which identifies its kind and version, and
  // this salt. For the calling thread alone. Throws std::bad_alloc.
  std::unique_ptr<Aead> cipher(std::string_view magic, const Salt& salt, Aead::Use use) const;

 private:
  Secret<kBytes> bytes_;
};

// The nonce of a part of a file or record: its number, big-endian.
std::array<unsigned char, 12> part_nonce(std::uint32_t part);

}  // namespace longhaul::cache
