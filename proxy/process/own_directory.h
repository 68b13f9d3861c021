// SPDX-License-Identifier: Apache-2.0
// Directories that only the daemon may read or write: state_dir, and a dictionary outside of it. No other
// user may be able to change their contents or to replace them.
#pragma once
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "proxy/process/account.h"

namespace longhaul::process {

// One sentence: which directory, why it is not safe, which command fixes it.
class UnsafeDirectory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Checks and changes nothing. Each directory on the way, symbolic links included, must belong to root or to
// `user`, and no other user may write it (unless it has the sticky bit, as /tmp has); the last directory
// without that exception. Returns the path without links; missing parts are no error. Throws UnsafeDirectory.
std::filesystem::path check_directory(const std::filesystem::path& directory, uid_t user);

// Why a missing directory could not be created: a sentence, or empty if it could. Creates the first missing
// directory and removes it again, the only test that works for all file systems.
std::string why_not_made(const std::filesystem::path& directory);

// Checks the directory, creates it if it is missing, and closes it to others (0700). If root prepares it for
// another user, that user becomes its owner, and the owner of those entries that are in `own_names` with
// everything below them; an existing directory that belongs to root must be empty or contain one of them.
// Hard links stay unchanged: they may belong to other users. Throws UnsafeDirectory.
std::filesystem::path prepare_directory(const std::filesystem::path& directory, const Account& account,
                                        const std::vector<std::string>& own_names);

// Called as `account`: checks that it can reach and write the directory. Throws UnsafeDirectory, which names
// the inaccessible directory on the way.
void check_reachable(const std::filesystem::path& directory, const Account& account);

}  // namespace longhaul::process
