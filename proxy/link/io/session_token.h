// SPDX-License-Identifier: Apache-2.0
// The names of sessions in HELLOs (PROTOCOL.md, section 2).
#pragma once
#include "proxy/link/frames.h"

namespace longhaul::link {

Token random_token();
// The same on both sides: both nonces are in it.
Token new_session_id(const Token& dialler, const Token& acceptor);

}  // namespace longhaul::link
