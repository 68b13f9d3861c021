// SPDX-License-Identifier: Apache-2.0
// The description of this module for the program.
#pragma once
#include "proxy/modules/descriptor.h"

namespace longhaul::tls {

extern const modules::Descriptor kDescriptor;

}  // namespace longhaul::tls
