// SPDX-License-Identifier: Apache-2.0
// Parses a keytab of MIT Kerberos, Heimdal, Samba or ktpass: file format version 2.
// https://web.mit.edu/kerberos/krb5-latest/doc/formats/keytab_file_format.html
#pragma once
#include <vector>

#include "proxy/modules/smb/seal/server_keys.h"

namespace longhaul::smb::seal {

struct Keytab {
  std::vector<ServiceKey> keys;      // of supported types
  std::vector<std::string> skipped;  // names of other types, for messages: "des-cbc-crc (etype 1)"
};

// The error is the rest of a sentence whose subject is the file.
config::TextResult<Keytab> parse_keytab(Bytes content);

}  // namespace longhaul::smb::seal
