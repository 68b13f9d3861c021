// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/silent_clients.h"

#include <catch2/catch.hpp>

namespace longhaul::smb {
namespace {

using namespace std::literals;

constexpr auto kKerberosName = "`H..\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"sv;
// ClientGuids: of Linux 6.1, of Samba's smbclient (Windows's order), and of a client that has none.
constexpr auto kOfLinux = "\x0d\xca\x0e\xd7\xbf\x2c\x49\x3c\xb5\x25\x52\x13\xbf\x88\x41\x63"sv;
constexpr auto kOfSamba = "\xd7\x0e\xca\x0d\x2c\xbf\x3c\x49\xb5\x25\x52\x13\xbf\x88\x41\x63"sv;
const std::string kNoGuid(16, '\0');

}  // namespace

TEST_CASE("Linux's kernel is recognised by its name, its bare NTLM, or its UUID where it has Kerberos") {
  CHECK(begins_ntlm_as_linux(as_bytes("NTLMSSP\0\1\0\0\0\x35\x82\x08\xe2"sv)));
  CHECK_FALSE(begins_ntlm_as_linux(as_bytes("NTLMSSP\0\1\0\0\0\x37\x82\x08\xe2"sv)));  // smbprotocol
  CHECK_FALSE(begins_ntlm_as_linux(as_bytes("`H..NTLMSSP\0\1\0\0\0\x35\x82\x08\xe2"sv)));
  CHECK_FALSE(begins_ntlm_as_linux(as_bytes("NTLMSSP\0\1"sv)));
  CHECK_FALSE(may_be_linux_with_kerberos(as_bytes("`H..NTLMSSP\0\1"sv), as_bytes(kOfLinux)));
  CHECK(may_be_linux_with_kerberos(as_bytes(kKerberosName), as_bytes(kOfLinux)));
  CHECK(may_be_linux_with_kerberos(as_bytes(kKerberosName), as_bytes(kNoGuid)));
  CHECK_FALSE(may_be_linux_with_kerberos(as_bytes(kKerberosName), as_bytes(kOfSamba)));
  CHECK_FALSE(may_be_linux_with_kerberos(as_bytes(""sv), as_bytes(kOfLinux)));
  CHECK(names_linux(as_bytes("Linux version 6.1\0CIFS VFS Client for Linux\0"sv)));
  CHECK(names_linux(as_bytes("C\0I\0F\0S\0 \0V\0F\0S\0 \0C\0l\0i\0e\0n\0t\0"sv)));
  CHECK_FALSE(names_linux(as_bytes("Unix\0Samba 4.17\0"sv)));
}

}  // namespace longhaul::smb
