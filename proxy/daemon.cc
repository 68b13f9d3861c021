// SPDX-License-Identifier: Apache-2.0
// Not there yet: says so.
#include "proxy/daemon.h"

#include "proxy/log/log.h"

namespace longhaul {

int run_daemon(const config::Config& config) {
  log::error("not_built_yet", {{"site", config.site}, {"reason", "this build has no daemon in it yet"}});
  return 1;
}

}  // namespace longhaul
