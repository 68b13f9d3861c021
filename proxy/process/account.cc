// SPDX-License-Identifier: Apache-2.0
#include "proxy/process/account.h"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proxy/config/read.h"

namespace longhaul::process {

std::string name_of(uid_t uid) {
  const passwd* entry = ::getpwuid(uid);
  return entry != nullptr ? entry->pw_name : std::to_string(uid);
}

Account account_for(const config::Config& config) {
  if (::geteuid() != 0) return {name_of(::geteuid()), ::geteuid(), ::getegid()};
  const std::string& name = config.process.user;
  errno = 0;
  if (const passwd* entry = ::getpwnam(name.c_str())) return {name, entry->pw_uid, entry->pw_gid};
  // getpwnam(3) lists several codes for "not found"; only these mean that the query failed.
  const bool unknown = errno != EIO && errno != EMFILE && errno != ENFILE && errno != ENOMEM;
  throw config::ConfigError(
      config.file.string() + ": [process] user = \"" + name + "\": " +
      (unknown ? "there is no such user on this host; create it with `useradd --system --user-group --no-create-home --shell "
                 "/usr/sbin/nologin " +
                     name + "`."
               : std::string("the user database cannot be read: ") + std::strerror(errno) + "."));
}

}  // namespace longhaul::process
