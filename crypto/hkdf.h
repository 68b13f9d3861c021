// SPDX-License-Identifier: Apache-2.0
// Derives keys from other keys: HKDF (RFC 5869) with SHA-256. The protocols and formats that use it define
// the labels and the purpose of each key.
#pragma once
#include "codecs/bytes.h"

namespace longhaul {

// Extract and expand (sections 2.2 and 2.3). An empty salt stands for 32 zeros. Both functions throw
// std::bad_alloc if OpenSSL has no memory; `out` is 1 to 8,160 bytes.
void hkdf(Bytes salt, Bytes secret, Bytes info, MutableBytes out);
// Only expand, for a secret that is already uniformly random.
void hkdf_expand(Bytes secret, Bytes info, MutableBytes out);

}  // namespace longhaul
