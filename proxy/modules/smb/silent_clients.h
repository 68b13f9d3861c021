// SPDX-License-Identifier: Apache-2.0
// Detects clients whose programs are never informed that a CLOSE failed or that a connection broke before it:
// jcifs, and Linux's kernel for files opened without an oplock or lease. A loss could not be reported to
// them. The dialects apply the result.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul::smb {

inline bool contains(Bytes text, Bytes part) { return !std::ranges::search(text, part).empty(); }

// In either character set.
inline bool names(Bytes session_setup, std::string_view name) {
  std::string wide(2 * name.size(), '\0');
  for (std::size_t i = 0; i < name.size(); ++i) wide[2 * i] = name[i];
  return contains(session_setup, as_bytes(wide)) || contains(session_setup, as_bytes(name));
}

// jcifs and jcifs-ng name themselves in SMB1's SESSION_SETUP_ANDX (NativeLanMan).
inline bool names_jcifs(Bytes session_setup) { return names(session_setup, "jCIFS"); }

// In SMB2 no field names the library. jcifs-ng derives the ClientGuid of NEGOTIATE from its machine id, which
// it also puts into NTLM's AUTHENTICATE ([MS-NLMP] 2.2.2.2, MachineID): no other known client does so.
inline bool authenticates_as_jcifs(Bytes security, Bytes client_guid) {
  constexpr std::string_view kNtlm = "NTLMSSP";
  const bool is_set = std::ranges::any_of(client_guid, [](std::byte each) { return each != std::byte{}; });
  return is_set && contains(security, as_bytes(kNtlm)) && contains(security, client_guid);
}

// Kerberos, in the standard encoding and in that of Windows: 1.2.840.113554.1.2.2, the bytes after the second
// arc.
inline bool offers_kerberos(Bytes security) {
  constexpr std::array<std::array<std::uint8_t, 6>, 2> kKerberos{
      {{0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}, {0x82, 0xf7, 0x12, 0x01, 0x02, 0x02}}};
  constexpr std::string_view kNtlm = "NTLMSSP";
  return !contains(security, as_bytes(kNtlm)) && std::ranges::any_of(kKerberos, [&](const auto& name) {
    return contains(security, std::as_bytes(std::span(name)));
  });
}

// With Kerberos jcifs repeats no id. But it announces DFS ([MS-SMB2] 2.2.3) and at most encryption: other
// clients that announce any capability also announce large transfers.
inline bool may_be_jcifs_with_kerberos(Bytes security, std::uint32_t capabilities) {
  constexpr std::uint32_t kDfs = 0x01, kEncryption = 0x40;
  return (capabilities & ~kEncryption) == kDfs && offers_kerberos(security);
}

// Linux's kernel names itself in the same field.
inline bool names_linux(Bytes session_setup) { return names(session_setup, "CIFS VFS Client"); }

// In SMB2 Linux announces POSIX extensions with 3.1.1 (client_habits.h). It sends NTLM messages unwrapped,
// while most others wrap them ([MS-SPNG]), and its first one offers no OEM names ([MS-NLMP] 2.2.1.1,
// 2.2.2.5), which other libraries do. With Kerberos below 3.1.1 it cannot be distinguished from smbclient.
inline bool begins_ntlm_as_linux(Bytes security) {
  constexpr std::string_view kFirst("NTLMSSP\0\1\0\0\0", 12);
  constexpr std::byte kOem{2};
  return security.size() >= 16 && std::ranges::equal(security.first(kFirst.size()), as_bytes(kFirst)) &&
         (security[12] & kOem) == std::byte{};
}

}  // namespace longhaul::smb
