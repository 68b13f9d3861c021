// SPDX-License-Identifier: Apache-2.0
// Which party reset this flow, from the view of one proxy: its own end or the other one, its own proxy or the
// other one, and the party that the code of a reset stream stands for. reset_by.h has the parties' names.
#pragma once
#include "proxy/flows/flow_table.h"
#include "proxy/link/types.h"

namespace longhaul::flows {

class ResetParty {
 public:
  explicit ResetParty(FlowRecord& record) : record_(record) {}

  ResetBy this_end() const { return record_.far_side ? ResetBy::server : ResetBy::client; }
  ResetBy other_end() const { return record_.far_side ? ResetBy::client : ResetBy::server; }
  ResetBy this_proxy() const { return record_.far_side ? ResetBy::far : ResetBy::near; }
  ResetBy other_proxy() const { return record_.far_side ? ResetBy::near : ResetBy::far; }
  // The party for the code that the peer sent. A module at the other side that gives up a flow looks like a
  // reset by its end.
  ResetBy of(link::ResetCode code) const {
    switch (code) {
      case link::ResetCode::connection_reset:
      case link::ResetCode::no_reader:
        return other_end();
      case link::ResetCode::aborted:
        return other_proxy();
      case link::ResetCode::undecodable:
      case link::ResetCode::session_lost:
        return ResetBy::link;
    }
    return ResetBy::link;
  }

  // Only the first event counts: later ones are its effects.
  void note(ResetBy party) {
    if (record_.reset_by == ResetBy::nobody) record_.reset_by = party;
  }

 private:
  FlowRecord& record_;
};

}  // namespace longhaul::flows
