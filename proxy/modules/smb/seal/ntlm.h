// SPDX-License-Identifier: Apache-2.0
// NTLM messages and the key of an NTLMv2 login [MS-NLMP]. The client's proof is verified before any of its
// statements is used: a wrong hash, user or password yields no key.
#pragma once
#include <array>
#include <optional>

#include "crypto/secret.h"
#include "proxy/modules/smb/seal/server_keys.h"

namespace longhaul::smb::seal {

using NtlmChallenge = std::array<std::byte, 8>;

// [MS-NLMP] 2.2.1: 1 NEGOTIATE, 2 CHALLENGE, 3 AUTHENTICATE; 0: none of them.
std::uint32_t ntlm_message_type(Bytes message);

// 2.2.1.2
std::optional<NtlmChallenge> parse_ntlm_challenge(Bytes message);

// 2.2.1.3: borrows the message.
struct NtlmAuthenticate {
  Bytes lm, nt, domain, user, random_key;
  std::uint32_t flags = 0;

  bool is_anonymous() const;                            // 3.2.5.1.2
  bool is_version1() const { return nt.size() <= 24; }  // NTLMv1 has 24 bytes, LM alone none
  std::u16string user_name() const;
  std::u16string domain_name() const;
};
std::optional<NtlmAuthenticate> parse_ntlm_authenticate(Bytes message);

// 3.3.2 and 3.4.5.1: the exported session key, or nullopt if the proof was not made with this hash.
std::optional<SecretBytes> ntlm_key(const NtlmChallenge& challenge, const NtlmAuthenticate& message,
                                    const NtHash& hash);

}  // namespace longhaul::smb::seal
