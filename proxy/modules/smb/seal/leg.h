// SPDX-License-Identifier: Apache-2.0
// One leg of a connection whose sessions' keys are known: opens what the client (or the server) sends, and
// seals what goes there. The halves see neither signatures nor encryption. Messages of sessions without keys
// pass as they are. protection.h decides how each message must be protected.
#pragma once
#include <vector>

#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/seal/gathered.h"
#include "proxy/modules/smb/seal/protection.h"
#include "proxy/modules/smb/seal/used_ids.h"

namespace longhaul::smb::seal {

class Leg {
 public:
  using To = Protection::To;
  // `used`: by the client before this leg was made.
  explicit Leg(To to, UsedIds used = {}) : to_(to), used_(std::move(used)) {}

  // Replaces the keys of a session that has some. False: there are too many sessions.
  [[nodiscard]] bool begin(smb2::SessionId session, const Agreement& agreement, const SessionKeys& keys) {
    return protection_.begin(session, agreement, keys, to_);
  }
  void end(smb2::SessionId session) { protection_.end(session); }
  bool empty() const { return protection_.empty(); }
  bool has(smb2::SessionId session) const { return protection_.has(session); }

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
  std::size_t state_bytes() const { return protection_.state_bytes() + used_.state_bytes(); }

 private:
  using Session = Protection::Session;
  Result<void> arrived(const smb2::Header& header, smb2::SessionId session, Form form);
  Result<void> seal_frame(std::vector<Slice> pieces, std::size_t size, std::vector<Slice>& out);

  To to_;
  Protection protection_;
  UsedIds used_;  // by the client
  Gathered gathered_;
};

}  // namespace longhaul::smb::seal
