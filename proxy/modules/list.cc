// SPDX-License-Identifier: Apache-2.0
// The modules of the product, and the only place that names one.
#include <array>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/modules.h"
#include "proxy/modules/smb/descriptor.h"
#include "proxy/modules/tls/descriptor.h"

namespace longhaul::modules {

std::span<const Descriptor* const> descriptors() {
  static constexpr std::array kAll{&smb::kDescriptor, &tls::kDescriptor, &http::kDescriptor};
  return kAll;
}

}  // namespace longhaul::modules
