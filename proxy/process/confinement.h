// SPDX-License-Identifier: Apache-2.0
// The entry to this folder: reduces the privileges of the process to what carrying flows requires. Each
// measure has its own file; this file defines their order.
#pragma once
#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul::process {

// The measures in force, for display.
struct Confinement {
  std::string user;
  std::vector<std::string> capabilities;  // as in privileges.h
  bool filters_system_calls = false;
  int landlock_version = 0;  // 0: only file modes protect files
  std::vector<std::string> warnings;
};

// Called once, before any other thread is started, after everything was read that only root may read.
// Afterwards this process and its threads
//   - are the user of [process] user, where root started it, with two capabilities at most;
//   - make new files for that user alone (umask 077), in directories that no other user can change;
//   - cannot be traced, read or dumped by processes of that user, and leave no core file;
//   - open no files and make no system calls beyond what the daemon needs, unless [process] sandbox = false.
// Throws config::ConfigError with a remedy; the process must then end.
Confinement confine(const config::Config& config);

// The errors and warnings that confine() would give, for `longhaul check`. Changes nothing.
struct Findings {
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
};
Findings findings(const config::Config& config);

}  // namespace longhaul::process
