// SPDX-License-Identifier: Apache-2.0
// The sessions of a connection, and whether their messages may be answered, changed or extended: not if they
// are signed or encrypted and the server's keys are missing, if the session is bound to another connection,
// or if it has expired. Decides nothing else; the first reason remains.
#pragma once
#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/smb2/types.h"

namespace longhaul::smb::smb2 {

class Sessions {
 public:
  // As Half::seals() and Half::cannot_open().
  void seals() { is_sealed_ = true; }
  void cannot_open(modules::Reason reason) {
    is_sealed_ = false;
    leave_alone(reason);
  }
  bool is_sealed() const { return is_sealed_; }

  // The server has set it up, for the first time or again. Returns false if there are too many, so that it is
  // not tracked.
  bool begun(SessionId session);
  void ended(SessionId session) { sessions_.erase(session); }
  // The server has reported in a response that the session has expired, perhaps on another path.
  void expire(SessionId session);
  // The server requires signing of all sessions, or encryption of this one. With its keys this has no effect.
  void signing_required();
  void encryption_required(SessionId session);
  // Requests of the session also arrive over another connection.
  void bound_elsewhere(SessionId session) { make_untouchable(session, reasons::smb_multichannel); }
  // An ordinary request of the session is signed.
  void came_signed(SessionId session) { make_untouchable(session, unopened(reasons::smb_signed)); }
  // A frame is encrypted: its session is not known.
  void came_encrypted();
  void make_untouchable(SessionId session, modules::Reason reason);
  // The whole connection passes unchanged from now on.
  void leave_alone(modules::Reason reason);

  // Signed, encrypted, signing required, bound to another channel, or expired and not yet renewed: passes
  // unchanged.
  bool untouchable(SessionId session) const;
  bool expired(SessionId session) const;
  // Whether some session of this connection must pass unchanged: only obligations are fulfilled from then on.
  bool any_untouchable() const { return why_untouchable_ != reasons::optimised; }
  modules::Reason why_untouchable() const { return why_untouchable_; }
  // Whether a request may still be answered in the server's place: at most, sessions have expired.
  bool may_be_answered() const {
    return !any_untouchable() || (!all_untouchable_ && !ids_are_fixed_ && !has_unopened_);
  }
  // Messages may be signed or encrypted: none may get another id, and no request of ours may be sent. If the
  // only problem was an unparsable message, ids are still translated.
  bool ids_are_fixed() const { return ids_are_fixed_; }

  // With more sessions, none is changed any more.
  static constexpr std::size_t kMostSessions = 1 << 12;

 private:
  struct Session {
    bool expired = false;
    // An ordinary request was signed, or arrived encrypted: its session may not be answered, changed or
    // extended.
    bool untouchable = false;
  };
  bool has_room_for(SessionId session) const {
    return sessions_.contains(session) || sessions_.size() < kMostSessions;
  }
  // Why a message arrives signed or encrypted. If the server's keys are there: its session has ended, or
  // never began. Then only its own id must be kept, and what is owed for other sessions can still be sent.
  modules::Reason unopened(modules::Reason without_keys) {
    has_unopened_ = true;
    return is_sealed_ ? reasons::smb_session : without_keys;
  }
  void untouchable_since(modules::Reason reason);

  KeyedMap<SessionId, Session> sessions_;
  bool all_untouchable_ = false, ids_are_fixed_ = false;
  bool is_sealed_ = false, has_unopened_ = false;
  modules::Reason why_untouchable_ = reasons::optimised;
};

}  // namespace longhaul::smb::smb2
