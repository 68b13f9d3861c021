// SPDX-License-Identifier: Apache-2.0
// What modules share knows none of them.
#include "proxy/modules/smb/status.h"

bool has_failed(longhaul::smb::Status status) { return longhaul::smb::is_error(status); }
