// SPDX-License-Identifier: Apache-2.0
// The keys of the logins in tests/fuzz/corpus/smb_login/, which smbclient 4.17, impacket and Linux 6.1 did
// at a Samba domain controller that no longer exists. Each is a row of tokens: who sent it (0 the client, 1
// the server), its length as two bytes, and the token.
#pragma once
#include <string_view>

namespace longhaul::smb::seal {

// FILES$@LONGHAUL.TEST with three types of key, version 1.
inline constexpr std::string_view kCapturedKeytab =
    "05020000004e0001000d4c4f4e474841554c2e54455354000646494c455324000000016b04a0070100120020498e49d1"
    "0407b1e721aa579d85708f7d199bc17581c68e000b294dd15cfed17e00000001000000000000003e0001000d4c4f4e47"
    "4841554c2e54455354000646494c455324000000016b04a007010011001012d78b5e0d028f1e6f5e845b3ad01ea90000"
    "0001000000000000003e0001000d4c4f4e474841554c2e54455354000646494c455324000000016b04a0070100170010"
    "92a52193b3be1e30c47833081fe4f83a0000000100000000";
// alice@LONGHAUL.TEST: its RC4 key is the NTLM hash of "Passw0rd-of-alice".
inline constexpr std::string_view kCapturedUserKeytab =
    "05020000004d0001000d4c4f4e474841554c2e544553540005616c696365000000016b04a008020012002031392cbb8a"
    "de16899b8ff448d1bfc79f3fc3657dc67114790af0a8eeca922cff00000002000000000000003d0001000d4c4f4e4748"
    "41554c2e544553540005616c696365000000016b04a00802001100105292b20347814a333f44ee9c34d3a65a00000002"
    "000000000000003d0001000d4c4f4e474841554c2e544553540005616c696365000000016b04a0080200170010805a69"
    "db227a2c7e77f7523b68d774690000000200000000";
inline constexpr std::string_view kCapturedHash = "805a69db227a2c7e77f7523b68d77469";
// As impacket's implementation of Kerberos finds it.
inline constexpr std::string_view kCapturedSessionKey =
    "3a681d24683adc55415ac42a42235360bb618c662123449b12f97623641d84f4";
inline constexpr std::string_view kCapturedInitiatorKey =
    "cc13d8c96cb2980283d3186e98c90d8e1743b2b11d933fd050d1de2572e43ace";

}  // namespace longhaul::smb::seal
