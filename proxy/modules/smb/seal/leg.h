// SPDX-License-Identifier: Apache-2.0
// One leg of a connection whose sessions' keys are known: opens what the client (or the server) sends, and
// seals what goes there. The halves see neither signatures nor encryption. Messages of sessions without keys
// pass as they are.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/seal/form.h"
#include "proxy/modules/smb/seal/gathered.h"
#include "proxy/modules/smb/seal/signer.h"
#include "proxy/modules/smb/seal/transform.h"
#include "proxy/modules/smb/seal/used_ids.h"
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::seal {

class Leg {
 public:
  enum class To { client, server };
  // `used`: by the client before this leg was made.
  explicit Leg(To to, UsedIds used = {}) : to_(to), used_(std::move(used)) {}

  // Replaces the keys of a session that has some. False: there are too many sessions.
  [[nodiscard]] bool begin(smb2::SessionId session, const Agreement& agreement, const SessionKeys& keys);
  void end(smb2::SessionId session);
  bool empty() const { return sessions_.empty(); }
  bool has(smb2::SessionId session) const { return sessions_.contains(session); }

  // A frame as it arrived, for the half. Errors, after which nothing of this connection may go anywhere:
  // forged (its signature or tag is invalid, or its number is that of an earlier request, or of no request
  // that the server has), unprotected (weaker than its session, tree or request).
  Result<Frame> open(const Frame& frame);
  // A frame that goes on as it arrived.
  void passes(const Frame& frame);

  // Bytes for the wire, in any pieces of whole frames: appends what to send of each frame that is complete.
  // An error, after which nothing may go anywhere: what arrived protected could only leave with less.
  [[nodiscard]] Result<void> seal(Slice bytes, std::vector<Slice>& out);

  // Approximate memory of its state.
  std::size_t state_bytes() const;

  static constexpr std::size_t kMostSessions = 256, kMostTrees = 4096, kMostRequests = 1 << 14;

 private:
  struct Session {
    Session(const Agreement& agreement, const SessionKeys& keys, To to);
    Signer signer;
    std::optional<Transform> in, out;
    Form least = Form::plain;  // that a request must have
    Form latest = Form::plain;
  };
  struct Tree {
    Form least = Form::plain, latest = Form::plain;
  };
  struct Request {
    smb2::SessionId session = 0;
    Form form = Form::plain;
  };
  using TreeKey = std::pair<smb2::SessionId, smb2::TreeId>;

  Session* find(smb2::SessionId session);
  Result<void> note_request(const smb2::Header& header, smb2::SessionId session, Form form);
  Result<void> note_answer(const smb2::Header& header, smb2::SessionId session, Form form);
  bool tells_stranger(const smb2::Header& answer, Form form) const;
  void note_stranger(Bytes transform);
  Result<void> seal_frame(std::vector<Slice> pieces, std::size_t size, std::vector<Slice>& out);
  Result<Request> form_of_request(const smb2::Header& header, smb2::SessionId session);
  Request form_of_answer(const smb2::Header& header, smb2::SessionId session);
  Result<void> expect_answer(const smb2::Header& request, const Request& sent);
  Result<void> learn(const smb2::Element& answer);
  static bool ends_session(const smb2::Header& answer);

  To to_;
  KeyedMap<smb2::SessionId, Session> sessions_;
  std::map<TreeKey, Tree> trees_;
  // Without a final answer. Towards the client those of sessions with keys; towards the server all, ours too.
  KeyedMap<smb2::MessageId, Request> requests_;
  // Sessions without keys here, for which encrypted requests went to the server: their numbers are not known.
  KeyedSet<smb2::SessionId> strangers_;
  UsedIds used_;  // by the client
  Gathered gathered_;
};

}  // namespace longhaul::smb::seal
