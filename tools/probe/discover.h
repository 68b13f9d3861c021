// SPDX-License-Identifier: Apache-2.0
// Which kind of probe the host answers, which hops lie before it, what size goes through, and which hops
// answer only now and then. Leaves measuring to sweep.h.
#pragma once
#include <memory>

#include "tools/probe/sweep.h"

namespace longhaul::probe {

// Fills in how the path is probed and its hops. Throws Trouble if nothing answers at all.
std::unique_ptr<Prober> discover(const PathOptions& options, const Stop& stop, Path& path,
                                 const OnProgress& on_progress);

}  // namespace longhaul::probe
