// SPDX-License-Identifier: Apache-2.0
// Recognises client libraries whose programs never learn that a CLOSE failed or that a connection broke
// before it. They must get no promises, because a loss could not be reported to them. The dialects apply the
// result.
#pragma once
#include <algorithm>
#include <array>
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul::smb {

inline bool contains(Bytes text, Bytes part) { return !std::ranges::search(text, part).empty(); }

// jcifs and jcifs-ng name themselves in SMB1's SESSION_SETUP_ANDX (NativeLanMan), in either character set.
inline bool names_jcifs(Bytes session_setup) {
  constexpr std::string_view kName = "jCIFS";
  std::array<std::byte, 2 * kName.size()> wide{};
  for (std::size_t i = 0; i < kName.size(); ++i) wide[2 * i] = static_cast<std::byte>(kName[i]);
  return contains(session_setup, wide) || contains(session_setup, as_bytes(kName));
}

// In SMB2 no field names the library. jcifs-ng derives the ClientGuid of NEGOTIATE from the number of its
// machine, which it also puts into NTLM's AUTHENTICATE ([MS-NLMP] 2.2.2.2, MachineID): no other known client
// does. With Kerberos it is not recognised.
inline bool authenticates_as_jcifs(Bytes security, Bytes client_guid) {
  constexpr std::string_view kNtlm = "NTLMSSP";
  const bool is_set = std::ranges::any_of(client_guid, [](std::byte each) { return each != std::byte{}; });
  return is_set && contains(security, as_bytes(kNtlm)) && contains(security, client_guid);
}

}  // namespace longhaul::smb
