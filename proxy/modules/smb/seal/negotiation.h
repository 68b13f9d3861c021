// SPDX-License-Identifier: Apache-2.0
// What the far half changes in NEGOTIATE ([MS-SMB2] 2.2.3, 2.2.4) so that it can sign and encrypt its own
// messages, and what client and server agree on.
//
// In 3.1.1 each leg gets a different salt: every key is derived from the hash over NEGOTIATE, so each leg has
// its own keys, and no nonce can be used for two texts. In older dialects, whose keys do not depend on
// NEGOTIATE, nothing may be changed (the client later asks the server what it received), and nothing needs to
// be: signatures have no nonces there, and encryption uses random ones (transform.h).
#pragma once
#include "codecs/slice.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/seal/agreement.h"

namespace longhaul::smb::seal {

// The request with a different salt, and without compression, which this program does not support. Unchanged
// if 3.1.1 is not offered. Throws std::bad_alloc if OpenSSL has no random numbers.
Frame request_for_server(const Frame& request);

struct AnswerForClient {
  Frame frame;
  Agreement agreement;
  bool changed = false;  // 3.1.1: from now on the client's keys differ from the server's
};
// In 3.1.1 with a different salt, and without multichannel: a further connection could not prove its session
// with keys that the server does not have. Returns an error if this is not a response to NEGOTIATE, or agrees
// on an unsupported algorithm. `request`: null after a NEGOTIATE of SMB1, to which the server may respond
// with SMB 2.0.2.
Result<AnswerForClient> answer_for_client(const Frame* request, const Frame& answer);

}  // namespace longhaul::smb::seal
