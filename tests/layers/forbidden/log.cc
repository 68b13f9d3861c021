// SPDX-License-Identifier: Apache-2.0
#include "proxy/log/log.h"

void tell() { longhaul::log::info("event", {}); }
