// SPDX-License-Identifier: Apache-2.0
// How the messages of one leg (leg.h) must be protected: its sessions with their keys, their trees, and the
// requests without an answer. It sees headers only; the leg verifies, signs and encrypts.
#pragma once
#include <map>
#include <optional>
#include <utility>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/errors.h"
#include "proxy/modules/smb/seal/form.h"
#include "proxy/modules/smb/seal/signer.h"
#include "proxy/modules/smb/seal/transform.h"
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::seal {

class Protection {
 public:
  // ---- sessions with keys

  enum class To { client, server };
  struct Session {
    Session(const Agreement& agreement, const SessionKeys& keys, To to);
    Signer signer;
    std::optional<Transform> in, out;
    Form least = Form::plain;  // that a request must have
    Form latest = Form::plain;
  };
  // Replaces the keys of a session that has some. Returns false if there are too many sessions.
  [[nodiscard]] bool begin(smb2::SessionId session, const Agreement& agreement, const SessionKeys& keys,
                           To to);
  void end(smb2::SessionId session);
  bool empty() const { return sessions_.empty(); }
  bool has(smb2::SessionId session) const { return sessions_.contains(session); }
  Session* find(smb2::SessionId session);

  // ---- what arrives, in this form. Errors: forged, unprotected (leg.h).

  Result<void> request_arrived(const smb2::Header& header, smb2::SessionId session, Form form);
  // The answer to a LOGOFF ends its session.
  Result<void> answer_arrived(const smb2::Header& header, smb2::SessionId session, Form form);
  bool awaits_answers() const { return !requests_.empty(); }
  // A message of the server that goes on as it arrived.
  void answer_passes(const smb2::Header& header);
  // A message to the server that is not read here: its transform header, if it has one.
  void encrypted_passes(Bytes front);
  // Whether an answer reports that its session is gone. A server cannot sign such an answer, and Samba copies
  // the request's signature into it: the answer counts as unsigned and passes unchanged. The client decides
  // about it, as it would without the pair.
  static bool says_ended(const smb2::Header& answer);

  // ---- what is sent

  // The form that a message gets, with the keys of this session. `outer`: the session whose transform it
  // arrived in; what names no session of ours is encrypted with that.
  struct Sent {
    smb2::SessionId session = 0;
    Form form = Form::plain;
  };
  Result<Sent> request_sent(const smb2::Header& header, smb2::SessionId session, smb2::SessionId outer);
  Sent answer_sent(const smb2::Header& header, smb2::SessionId session, smb2::SessionId outer);
  // What an answer to the client says of later requests.
  Result<void> learn(const smb2::Element& answer);

  static bool ends_session(const smb2::Header& answer);

  std::size_t state_bytes() const;

  static constexpr std::size_t kMostSessions = 256, kMostTrees = 4096, kMostRequests = 1 << 14;

 private:
  struct Tree {
    Form least = Form::plain, latest = Form::plain;
  };
  using TreeKey = std::pair<smb2::SessionId, smb2::TreeId>;

  bool tells_stranger(const smb2::Header& answer, Form form) const;
  Result<Form> form_of_request(const smb2::Header& header, smb2::SessionId session);
  Sent with_keys(Sent sent, smb2::SessionId outer);

  KeyedMap<smb2::SessionId, Session> sessions_;
  std::map<TreeKey, Tree> trees_;
  // Without a final answer. Towards the client those of sessions with keys; towards the server all, ours too.
  KeyedMap<smb2::MessageId, Sent> requests_;
  // Sessions without keys here, for which encrypted requests went to the server: their numbers are not known.
  KeyedSet<smb2::SessionId> strangers_;
};

}  // namespace longhaul::smb::seal
