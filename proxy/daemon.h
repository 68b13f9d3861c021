// SPDX-License-Identifier: Apache-2.0
// The daemon as a whole: starts everything in the configuration, runs until a signal, and shuts down in
// order. The command line reads the configuration and opens the log.
#pragma once
#include "proxy/config/config.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/web_tls.h"
#include "proxy/process/confinement.h"
#include "proxy/process/service_manager.h"

namespace longhaul {

// `identity` and `web` were read while this process could read files that only root may read; `confinement`
// was applied since, and is only reported here. `service` is notified when the daemon listens, reloads and
// ends.
//
// Returns the program's exit code: 0 after SIGTERM or SIGINT, 1 after a failure (already logged). Throws
// config::ConfigError before anything is started if the configuration cannot work on this host.
int run_daemon(const config::Config& config, identity::Identity identity, identity::WebTls web,
               process::Confinement confinement, const process::ServiceManager& service);

}  // namespace longhaul
