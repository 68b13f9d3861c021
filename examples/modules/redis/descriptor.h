// SPDX-License-Identifier: Apache-2.0
// What a program knows of the example.
#pragma once
#include "proxy/modules/descriptor.h"

namespace longhaul::redis {

extern const modules::Descriptor kDescriptor;

}  // namespace longhaul::redis
