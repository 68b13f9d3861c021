// SPDX-License-Identifier: Apache-2.0
// OpenSSL's errors in the words of operators, and as one of few cases.
#pragma once
#include <string>

#include "proxy/link/io/refusal.h"

namespace longhaul::link {

// Why a handshake failed with this code of ERR_get_error().
Refusal refusal_of(unsigned long code);
// 0: the connection ended.
std::string openssl_text(unsigned long code);
// Of the oldest error of this thread; clears all of them.
std::string openssl_error();

}  // namespace longhaul::link
