// SPDX-License-Identifier: Apache-2.0
// All frames that a proxy builds or changes, in one include.
#pragma once
#include "proxy/modules/smb/smb2/build_requests.h"
#include "proxy/modules/smb/smb2/build_responses.h"
#include "proxy/modules/smb/smb2/edited_frame.h"
