// SPDX-License-Identifier: Apache-2.0
// The identifiers of sessions in HELLO (PROTOCOL.md, section 2).
#pragma once
#include "proxy/link/frames.h"

namespace longhaul::link {

Token random_token();
// The same on both sides: derived from both nonces.
Token new_session_id(const Token& dialler, const Token& acceptor);

}  // namespace longhaul::link
