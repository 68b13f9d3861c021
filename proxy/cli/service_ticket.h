// SPDX-License-Identifier: Apache-2.0
// A login token for a server, made with the tickets of the caller (kinit). The only code that uses the host's
// Kerberos configuration and libkrb5; the daemon never calls it.
#pragma once
#include <string>

#include "codecs/byte_writer.h"
#include "proxy/config/text_error.h"

namespace longhaul::cli {

// A token for SERVICE/SERVER, in the form used inside SPNEGO (RFC 4121, section 4.1). The error is a sentence
// with a remedy.
config::TextResult<Buffer> service_token(const std::string& service, const std::string& server);

}  // namespace longhaul::cli
