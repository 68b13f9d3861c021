// SPDX-License-Identifier: Apache-2.0
// The near half's part in oplocks, the client's own and those that the far half requests on its behalf: what
// is granted and broken determines what the other parts may use. Before the client opens, renames or deletes
// a name again, the oplock on its behalf is returned: this saves the round trip of the server's break.
#pragma once
#include "proxy/modules/smb/smb1/near_ahead.h"
#include "proxy/modules/smb/smb1/near_closes.h"
#include "proxy/modules/smb/smb1/near_writes.h"

namespace longhaul::smb::smb1 {

class NearOplocks {
 public:
  // All outlive this object.
  NearOplocks(Outputs& out, Connection& connection, const LocalAnswers& local, NearAhead& ahead,
              NearWrites& writes, const NearCloses& closes, modules::Counters& counters)
      : out_(out),
        connection_(connection),
        local_(local),
        ahead_(ahead),
        writes_(writes),
        closes_(closes),
        counters_(counters) {}

  // A request of the client that breaks the oplocks of this name is about to be passed on.
  void give_up(const FileName& name);
  // A break by the server of an oplock that the client knows of. Returns false if the client must not receive
  // it.
  bool broken(const Message& message);

  // ---- the far half's messages

  void held(TimePoint now, const Held& held);
  void taken_back(const Break& message);
  void watched(const Watched& watched);

 private:
  Outputs& out_;
  Connection& connection_;
  const LocalAnswers& local_;
  NearAhead& ahead_;
  NearWrites& writes_;
  const NearCloses& closes_;
  modules::Counters& counters_;
};

}  // namespace longhaul::smb::smb1
