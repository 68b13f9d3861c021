// SPDX-License-Identifier: Apache-2.0
// What the far half changes in NEGOTIATE ([MS-SMB2] 2.2.3, 2.2.4) so that it may sign and encrypt messages of its
// own, and what client and server agree on by it.
//
// In 3.1.1 both legs get another salt: every key comes from the hash over NEGOTIATE, so each leg has keys of its
// own, and no nonce can be used for two texts. In older dialects, whose keys do not depend on NEGOTIATE, nothing
// may be changed (the client asks the server later what it received), and nothing needs to be: signatures have no
// nonces there, and encryption uses random ones (transform.h).
#pragma once
#include "codecs/slice.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/seal/agreement.h"

namespace longhaul::smb::seal {

// A request with another salt, and without compression, which nothing here reads. Unchanged if 3.1.1 is not
// offered. Throws std::bad_alloc if OpenSSL has no random numbers.
Frame request_for_server(const Frame& request);

struct AnswerForClient {
  Frame frame;
  Agreement agreement;
  bool changed = false;  // 3.1.1: the client's keys differ from the server's from here on
};
// Of 3.1.1 with another salt, and without multichannel: a further connection could not prove its session with
// keys that the server does not have. An error: it is not the answer to a NEGOTIATE, or agrees on an algorithm
// that is not known here. `request`: null after one of SMB1, which may be answered by SMB 2.0.2.
Result<AnswerForClient> answer_for_client(const Frame* request, const Frame& answer);

}  // namespace longhaul::smb::seal
