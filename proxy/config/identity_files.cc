// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/identity_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <vector>

#include "proxy/config/suggest.h"

namespace longhaul::config {
namespace {

// The daemon reads its keys as root when it starts, and as its own user at a reload.
std::string who_cannot(int error) {
  return error == EACCES ? " by the user ID " + std::to_string(::geteuid()) +
                               "; chown it to that user with mode 0600, or restart the daemon"
                         : std::string();
}

// The remedy for a missing file: the command that creates it, or the similar files that exist.
std::string instead_of(const std::filesystem::path& missing, const std::string& site) {
  std::error_code error;
  std::vector<std::string> names;
  const std::filesystem::path folder = missing.parent_path().empty() ? "." : missing.parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == missing.extension()) names.push_back(entry.path().filename().string());
  if (names.empty() || missing.stem() == site)
    return "; `longhaul keygen " + site + "` creates " + site + missing.extension().string();
  std::sort(names.begin(), names.end());
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string near(nearest(missing.filename().string(), known));
  return "; its directory has " + (near.empty() ? names.front() : near);
}

}  // namespace

std::string problem_of_file(const std::filesystem::path& path, const std::string& site) {
  std::error_code error;
  errno = 0;
  if (std::filesystem::is_regular_file(path, error) && std::ifstream(path)) return "";
  const int reason = errno;
  return reason == EACCES || std::filesystem::exists(path, error) ? "cannot be read" + who_cannot(reason)
                                                                  : "does not exist" + instead_of(path, site);
}

}  // namespace longhaul::config
