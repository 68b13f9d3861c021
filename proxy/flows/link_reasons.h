// SPDX-License-Identifier: Apache-2.0
// The reasons that follow from the state of a link and from the far side's answer. Pure.
#pragma once
#include "proxy/flows/reason.h"
#include "proxy/link/destination.h"
#include "proxy/link/status.h"

namespace longhaul::flows {

inline Reason reason_of(link::LinkState state) {
  switch (state) {
    case link::LinkState::never_up:
      return reasons::link_never_up;
    case link::LinkState::up:
      return reasons::optimised;
    case link::LinkState::silent:
      return reasons::link_silent;
    case link::LinkState::down:
      return reasons::link_down;
  }
  return reasons::link_down;
}

// Why a flow whose server the far side did not connect is not optimised.
inline Reason reason_of(link::ConnectOutcome outcome) {
  switch (outcome) {
    case link::ConnectOutcome::not_allowed:
      return reasons::peer_refused;
    case link::ConnectOutcome::client_not_allowed:
      return reasons::client_not_in_networks;
    default:
      return reasons::destination_refused;
  }
}

}  // namespace longhaul::flows
