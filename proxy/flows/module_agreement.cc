// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/module_agreement.h"

namespace longhaul::flows {

ModuleAgreement agree_on(const modules::Listed* module, AtPeer at_peer, const config::Features& wanted,
                         const config::Features& in_force) {
  const auto is_on = [&](const config::Features& features) {
    return features.modules.value(module->descriptor.name) != 0;
  };
  if (!module || !is_on(wanted)) return {};
  // A peer without the module does not have its features either; that does not mean that they are switched
  // off there.
  if (at_peer == AtPeer::absent) return {.why_none = reasons::module_not_at_peer};
  if (!is_on(in_force)) return {};
  if (module->memory->is_short()) return {.why_none = reasons::memory_limit};
  return {.module = module};
}

}  // namespace longhaul::flows
