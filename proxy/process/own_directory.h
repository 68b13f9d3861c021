// SPDX-License-Identifier: Apache-2.0
// Directories that only the daemon may read or write: state_dir, and a dictionary elsewhere. No other user may be
// able to change their contents or to replace them.
#pragma once
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "proxy/process/account.h"

namespace longhaul::process {

// One sentence: which directory, why it is not safe, which command helps.
class UnsafeDirectory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Looks and changes nothing. Each directory on the way, symbolic links included, must belong to root or to
// `user`, and be writable by nobody else (or have the sticky bit, as /tmp has); the last one without that
// exception. Returns the path without links; what does not exist is no fault. Throws UnsafeDirectory.
std::filesystem::path check_directory(const std::filesystem::path& directory, uid_t user);

// Checks it, makes it where it is missing, closes it to others (0700). Where root prepares it for another user,
// gives it to that user: with those of its entries that are in `own_names`, and what is below these; an
// existing directory of root's must be empty or have one of them. Hard links are left alone: they may be
// somebody's. Throws UnsafeDirectory.
std::filesystem::path prepare_directory(const std::filesystem::path& directory, const Account& account,
                                        const std::vector<std::string>& own_names);

// Called as `account`: it can reach and write the directory. Throws UnsafeDirectory, which names the directory on
// the way that is closed.
void check_reachable(const std::filesystem::path& directory, const Account& account);

}  // namespace longhaul::process
