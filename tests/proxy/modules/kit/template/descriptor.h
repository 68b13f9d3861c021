// SPDX-License-Identifier: Apache-2.0
// What a program knows of the template.
#pragma once
#include "proxy/modules/descriptor.h"

namespace longhaul::lines {

extern const modules::Descriptor kDescriptor;

}  // namespace longhaul::lines
