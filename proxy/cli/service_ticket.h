// SPDX-License-Identifier: Apache-2.0
// A login token for a server, made with the tickets of the caller (kinit). The only user of the host's
// Kerberos configuration, and of libkrb5: the daemon never calls it.
#pragma once
#include <string>

#include "codecs/byte_writer.h"
#include "proxy/config/text_error.h"

namespace longhaul::cli {

// For SERVICE/SERVER; as it stands in SPNEGO (RFC 4121, section 4.1). The error is a sentence with a remedy.
config::TextResult<Buffer> service_token(const std::string& service, const std::string& server);

}  // namespace longhaul::cli
