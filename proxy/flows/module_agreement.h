// SPDX-License-Identifier: Apache-2.0
// Whether a near flow uses the module that it is offered: both sides run it, or neither does. Pure;
// recognition.h finds the module.
#pragma once
#include <optional>

#include "proxy/config/features.h"
#include "proxy/flows/reason.h"
#include "proxy/modules/modules.h"

namespace longhaul::flows {

struct ModuleAgreement {
  const modules::Listed* module = nullptr;  // null if none is used
  std::optional<Reason> why_none;           // for the flow's record; nullopt if this is as configured
};

enum class AtPeer : std::uint8_t { absent, present };  // the module, in the same version

// `module`: null if there is none. `wanted`: this site's features for the flow; `in_force`: those that the
// peer allows as well.
ModuleAgreement agree_on(const modules::Listed* module, AtPeer at_peer, const config::Features& wanted,
                         const config::Features& in_force);

}  // namespace longhaul::flows
