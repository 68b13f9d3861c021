// SPDX-License-Identifier: Apache-2.0
// The modules of a program with the example: in the place of proxy/modules/list.cc.
#include <array>

#include "examples/modules/redis/descriptor.h"
#include "proxy/modules/modules.h"
#include "proxy/modules/smb/descriptor.h"

namespace longhaul::modules {

std::span<const Descriptor* const> descriptors() {
  static constexpr std::array kAll{&smb::kDescriptor, &redis::kDescriptor};
  return kAll;
}

}  // namespace longhaul::modules
