// SPDX-License-Identifier: Apache-2.0
// The daemon as a whole: starts everything in the configuration, runs until a signal, and ends in order. The
// command line reads the configuration and sets up the log.
#pragma once
#include "proxy/config/config.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/web_tls.h"
#include "proxy/process/confinement.h"
#include "proxy/process/service_manager.h"

namespace longhaul {

// `identity` and `web` were read while this process could read what root alone may; `confinement` is what it was put under
// since, and is only reported here. `service` is told when the daemon listens, reloads and ends.
//
// Returns the program's exit code: 0 after SIGTERM or SIGINT, 1 when something failed (already logged).
// Throws config::ConfigError before anything is started where the configuration cannot work on this host.
int run_daemon(const config::Config& config, identity::Identity identity, identity::WebTls web,
               process::Confinement confinement, const process::ServiceManager& service);

}  // namespace longhaul
