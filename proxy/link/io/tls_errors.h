// SPDX-License-Identifier: Apache-2.0
// OpenSSL's errors as text for operators, and as a Refusal.
#pragma once
#include <string>

#include "proxy/link/io/refusal.h"

namespace longhaul::link {

// Why a handshake failed with this code of ERR_get_error().
Refusal refusal_of(unsigned long code);
// The text for the code; 0 means that the connection ended.
std::string openssl_text(unsigned long code);
// The text of this thread's oldest error; clears all errors.
std::string openssl_error();

}  // namespace longhaul::link
