// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/sessions.h"

namespace longhaul::smb::smb2 {

bool Sessions::begun(SessionId session) {
  if (sessions_.size() >= kMostSessions) return false;
  sessions_[session].expired = false;
  return true;
}

void Sessions::expire(SessionId session) {
  if (has_room_for(session)) {
    sessions_[session].expired = true;
  } else {
    all_untouchable_ = true;
  }
  untouchable_since(reasons::smb_session);
}

void Sessions::signing_required() {
  if (!is_sealed_) leave_alone(reasons::smb_signed);
}

void Sessions::encryption_required(SessionId session) {
  if (!is_sealed_) make_untouchable(session, reasons::smb_encrypted);
}

void Sessions::came_encrypted() {
  leave_alone(unopened(reasons::smb_encrypted));
  ids_are_fixed_ = true;  // its own is not known
}

void Sessions::make_untouchable(SessionId session, modules::Reason reason) {
  if (has_room_for(session)) {
    sessions_[session].untouchable = true;
  } else {
    all_untouchable_ = true;
  }
  untouchable_since(reason);
}

void Sessions::leave_alone(modules::Reason reason) {
  all_untouchable_ = true;
  untouchable_since(reason);
}

void Sessions::untouchable_since(modules::Reason reason) {
  if (!any_untouchable()) why_untouchable_ = reason;
  if (reason != reasons::smb_not_understood && reason != reasons::smb_session) ids_are_fixed_ = true;
}

bool Sessions::expired(SessionId session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.expired;
}

bool Sessions::untouchable(SessionId session) const {
  if (all_untouchable_) return true;
  const auto found = sessions_.find(session);
  return found != sessions_.end() && (found->second.untouchable || found->second.expired);
}

}  // namespace longhaul::smb::smb2
