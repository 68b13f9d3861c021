// SPDX-License-Identifier: Apache-2.0
// Gives back oplocks that the far half held on the client's behalf when the server breaks them (like
// smb2/oplock_returns.h): after everything that was promised under them. If the near half does not say in
// time that nothing more is, the server's connection must end.
#pragma once
#include <map>
#include <optional>
#include <set>

#include "proxy/modules/smb/oplock_fences.h"
#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class OplockReturns {
 public:
  // Both outlive this object.
  OplockReturns(ServerLeg& leg, Connection& connection) : leg_(leg), connection_(connection) {}

  // The server's break of this one, which must be answered; `left`: level II, or none.
  void broken(TimePoint now, const Open& open, Oplock left);
  // Broken has come: everything promised under it came before. Also in advance: the client is about to open
  // the file again.
  void near_gives_back(const OpenKey& key);
  // The near half says nothing more.
  void near_is_over();
  void closed(const OpenKey& key);
  // Gives back what nothing hinders any more.
  void give_back();

  bool is_idle() const { return breaks_.empty(); }
  std::optional<TimePoint> next_timeout() const { return fences_.next_timeout(); }
  // True, once for each: the near half has not confirmed a break in time.
  bool is_late(TimePoint now) { return fences_.is_late(now); }

 private:
  struct Break {
    bool near_done = false;  // nothing more is promised under it
    Oplock left = Oplock::none;
  };

  ServerLeg& leg_;
  Connection& connection_;
  std::map<OpenKey, Break> breaks_;
  OplockFences fences_;         // of opens that may write
  std::set<OpenKey> given_up_;  // the near half relies on these no more
  bool near_over_ = false;
};

}  // namespace longhaul::smb::smb1
