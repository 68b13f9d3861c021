// SPDX-License-Identifier: Apache-2.0
// Encrypted Client Hello (RFC 9849), as far as it can be read without the server's key. A client that only
// pretends to use it (GREASE) sends random values. A server that uses it sends its configurations to a client
// with another key; so the values of a client that does not pretend are among them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "codecs/byte_writer.h"

namespace longhaul::tls {

inline constexpr unsigned kEchExtension = 0xfe0d;

// What a ClientHello says about the server's key.
struct EchOffer {
  std::uint16_t kdf = 0, aead = 0;
  std::uint8_t config = 0;
};
// Of the extension in an outer ClientHello (section 5); nullopt if it is none.
std::optional<EchOffer> ech_offer(Bytes extension);
// Whether `configs` (ECHConfigList, section 4) has a key for that offer and this public name.
bool has_ech_key(Bytes configs, const EchOffer& offer, std::string_view public_name);
// An extension that every server with ECH answers with its configurations (section 6.2). Throws
// std::bad_alloc if there are no random numbers.
Buffer pretended_ech();

}  // namespace longhaul::tls
