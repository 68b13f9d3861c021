// SPDX-License-Identifier: Apache-2.0
// Recognises client libraries whose programs never learn that a CLOSE failed or that a connection broke
// before it. They must get no promises, because a loss could not be reported to them. The dialects apply the
// result.
#pragma once
#include <algorithm>
#include <array>
#include <span>
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
// does.
inline bool authenticates_as_jcifs(Bytes security, Bytes client_guid) {
  constexpr std::string_view kNtlm = "NTLMSSP";
  const bool is_set = std::ranges::any_of(client_guid, [](std::byte each) { return each != std::byte{}; });
  return is_set && contains(security, as_bytes(kNtlm)) && contains(security, client_guid);
}

// With Kerberos it repeats nothing. But it announces DFS ([MS-SMB2] 2.2.3) and at most encryption beside it:
// others that announce anything announce large transfers, too.
inline bool may_be_jcifs_with_kerberos(Bytes security, std::uint32_t capabilities) {
  // 1.2.840.113554.1.2.2, and as Windows spells it: the bytes behind their second arc.
  constexpr std::array<std::array<std::uint8_t, 6>, 2> kKerberos{
      {{0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}, {0x82, 0xf7, 0x12, 0x01, 0x02, 0x02}}};
  constexpr std::uint32_t kDfs = 0x01, kEncryption = 0x40;
  constexpr std::string_view kNtlm = "NTLMSSP";
  if ((capabilities & ~kEncryption) != kDfs || contains(security, as_bytes(kNtlm))) return false;
  return std::ranges::any_of(
      kKerberos, [&](const auto& name) { return contains(security, std::as_bytes(std::span(name))); });
}

}  // namespace longhaul::smb
