// SPDX-License-Identifier: Apache-2.0
// Errors in data from a disk, in addition to system errors.
#pragma once
#include "codecs/result.h"

namespace longhaul::cache {

enum class StoreError {
  truncated = 1,  // a file ends before its expected end
  damaged,        // the content is invalid, or encrypted with another key
  wrong_digest,   // the bytes do not match their name
  no_randomness,  // no random bytes for a key or a salt
  no_cipher,      // OpenSSL has failed
  catalogue,      // an error of RocksDB; the note has its message
};

const boost::system::error_category& store_category();
inline boost::system::error_code make_error_code(StoreError error) {
  return {static_cast<int>(error), store_category()};
}

}  // namespace longhaul::cache

template <>
struct boost::system::is_error_code_enum<longhaul::cache::StoreError> : std::true_type {};
