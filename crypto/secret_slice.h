// SPDX-License-Identifier: Apache-2.0
// Key material in a slice, for messages that carry it: wiped when the last user releases it.
#pragma once
#include <algorithm>
#include <memory>
#include <span>

#include "codecs/slice.h"
#include "crypto/secret.h"

namespace longhaul {

// A copy of the concatenated parts.
inline Slice secret_slice(std::span<const Bytes> parts) {
  std::size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  const auto secret = std::make_shared<SecretBytes>(size);
  std::byte* at = secret->data();
  for (const Bytes part : parts) at = std::copy(part.begin(), part.end(), at);
  return Slice::adopt(std::shared_ptr<const std::byte[]>(secret, secret->data()), size);
}
inline Slice secret_slice(Bytes bytes) { return secret_slice(std::span(&bytes, 1)); }

// Wipes a decoder's copy that is no longer used.
inline void wipe(const Slice& decoded) {
  OPENSSL_cleanse(const_cast<std::byte*>(decoded.bytes().data()), decoded.size());
}

}  // namespace longhaul
