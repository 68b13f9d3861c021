// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/silent_clients.h"

#include <catch2/catch.hpp>

namespace longhaul::smb {

using namespace std::literals;

TEST_CASE("Linux's kernel is recognised by its name, or its bare NTLM") {
  CHECK(begins_ntlm_as_linux(as_bytes("NTLMSSP\0\1\0\0\0\x35\x82\x08\xe2"sv)));
  CHECK_FALSE(begins_ntlm_as_linux(as_bytes("NTLMSSP\0\1\0\0\0\x37\x82\x08\xe2"sv)));  // smbprotocol
  CHECK_FALSE(begins_ntlm_as_linux(as_bytes("`H..NTLMSSP\0\1\0\0\0\x35\x82\x08\xe2"sv)));
  CHECK_FALSE(begins_ntlm_as_linux(as_bytes("NTLMSSP\0\1"sv)));
  CHECK(names_linux(as_bytes("Linux version 6.1\0CIFS VFS Client for Linux\0"sv)));
  CHECK(names_linux(as_bytes("C\0I\0F\0S\0 \0V\0F\0S\0 \0C\0l\0i\0e\0n\0t\0"sv)));
  CHECK_FALSE(names_linux(as_bytes("Unix\0Samba 4.17\0"sv)));
}

}  // namespace longhaul::smb
