// SPDX-License-Identifier: Apache-2.0
// Reads [limits], [process] and [log]. read.cc has the other tables.
#pragma once
#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

Limits read_limits(const Section& top);
Process read_process(const Section& top);
Log read_log(const Section& top);

}  // namespace longhaul::config
