// SPDX-License-Identifier: Apache-2.0
// The description of the SMB module for the program.
#pragma once
#include "proxy/modules/descriptor.h"

namespace longhaul::smb {

extern const modules::Descriptor kDescriptor;

}  // namespace longhaul::smb
