// SPDX-License-Identifier: Apache-2.0
// Three system calls (landlock(7)), for which the C library has no functions.
#include "proxy/process/file_access.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace longhaul::process {
namespace {

// Missing in Debian 12's headers: versions 3, 5 and 6 of the interface.
constexpr std::uint64_t kTruncate = 1ull << 14;
constexpr std::uint64_t kDeviceRequests = 1ull << 15;
constexpr std::uint64_t kAbstractSockets = 1ull << 0, kSignals = 1ull << 1;

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER | kTruncate;
constexpr std::uint64_t kForFiles =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE | kTruncate | kDeviceRequests;

// The current struct landlock_ruleset_attr. Older kernels support only its first one or two members.
struct Ruleset {
  std::uint64_t files;
  std::uint64_t network;
  std::uint64_t scopes;
};

// The rights that the ruleset controls; other rights stay allowed.
std::uint64_t all_access(int version) {
  std::uint64_t access = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // the last right of version 1
  if (version >= 2) access |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) access |= kTruncate;
  if (version >= 5) access |= kDeviceRequests;
  return access;
}

[[noreturn]] void refused() {
  throw std::runtime_error(std::string("Landlock cannot be set up: ") + std::strerror(errno));
}

}  // namespace

FileAccess::FileAccess(const std::vector<std::filesystem::path>& read,
                       const std::vector<std::filesystem::path>& write) {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return;
  version_ = static_cast<int>(version);
  const Ruleset ruleset{all_access(version_), 0, kAbstractSockets | kSignals};
  const std::size_t size = version_ >= 6 ? sizeof ruleset : sizeof ruleset.files;
  ruleset_ = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &ruleset, size, 0));
  if (ruleset_ < 0) refused();
  for (const auto& path : read) allow(path, kRead);
  for (const auto& path : write) allow(path, kWrite);
}

FileAccess::~FileAccess() {
  if (ruleset_ >= 0) ::close(ruleset_);
}

void FileAccess::allow(const std::filesystem::path& path, std::uint64_t access) const {
  const int descriptor = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat about {};
  const bool folder = ::fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode);
  access &= all_access(version_);
  const landlock_path_beneath_attr rule{folder ? access : access & kForFiles, descriptor};
  const long added = ::syscall(SYS_landlock_add_rule, ruleset_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  if (added != 0) refused();
}

void FileAccess::enforce() const {
  if (ruleset_ >= 0 && ::syscall(SYS_landlock_restrict_self, ruleset_, 0) != 0) refused();
}

}  // namespace longhaul::process
