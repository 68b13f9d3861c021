// SPDX-License-Identifier: Apache-2.0
// Finds the token of the login mechanism in a security buffer: SPNEGO (RFC 4178, [MS-SPNG]), or the token
// alone.
#pragma once
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul::smb::seal {

struct MechanismToken {
  // none: the buffer has no token (the server only names its choice, or confirms).
  enum class Kind : std::uint8_t { none, ntlm, kerberos, other, malformed } kind = Kind::none;
  Bytes token;  // NTLM: the message. Kerberos: from the token's two-byte type on
  std::string_view name;  // of the mechanism, for messages
};

MechanismToken unwrap(Bytes security_buffer);

}  // namespace longhaul::smb::seal
