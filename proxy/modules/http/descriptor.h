// SPDX-License-Identifier: Apache-2.0
// What the program knows of this module.
#pragma once
#include "proxy/modules/descriptor.h"

namespace longhaul::http {

extern const modules::Descriptor kDescriptor;

}  // namespace longhaul::http
