// SPDX-License-Identifier: Apache-2.0
// Declarations shared only by the sources of the metrics.
#pragma once
#include "proxy/control/controlled.h"
#include "proxy/control/metric_families.h"

namespace longhaul::control {

void add_links(Families& families, const Status& status);
void add_udp(Families& families, const Status& status);
void add_paths(Families& families, const Status& status);
void add_reduction(Families& families, const Status& status);

}  // namespace longhaul::control
