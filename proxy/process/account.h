// SPDX-License-Identifier: Apache-2.0
// The user that the daemon runs as: [process] user if root started it, otherwise the user that started it.
// privileges.h switches to it.
#pragma once
#include <sys/types.h>

#include <string>

#include "proxy/config/config.h"

namespace longhaul::process {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
};

// Throws config::ConfigError, with the command that creates the user, if root starts the daemon and the user
// does not exist. Queries the system's user database, so it must run before file_access.h restricts the
// files.
Account account_for(const config::Config& config);

// For messages: the user's name, or its number if it has no name.
std::string name_of(uid_t uid);

}  // namespace longhaul::process
