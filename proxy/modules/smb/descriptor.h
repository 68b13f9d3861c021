// SPDX-License-Identifier: Apache-2.0
// The program's description of the SMB module.
#pragma once
#include "proxy/modules/descriptor.h"

namespace longhaul::smb {

extern const modules::Descriptor kDescriptor;

}  // namespace longhaul::smb
