// SPDX-License-Identifier: Apache-2.0
// Restricts the files that the daemon can open (Landlock): it may read system files and its configuration, and write
// its own files. Without Landlock only file modes apply.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace longhaul::process {

// Made while the paths can still be reached, put in force when the user has changed. Descriptors that are open
// stay as they are.
class FileAccess {
 public:
  // Directories count with everything below them; paths that do not exist are passed over. Throws
  // std::runtime_error where the kernel has Landlock and refuses it.
  FileAccess(const std::vector<std::filesystem::path>& read, const std::vector<std::filesystem::path>& write);
  ~FileAccess();
  FileAccess(const FileAccess&) = delete;
  FileAccess& operator=(const FileAccess&) = delete;

  // The kernel's version of the interface; 0: it has none, or it was not enabled at boot.
  int version() const { return version_; }
  // For this thread and those it starts, for good. Needs no_new_privs. No file is executed any more, and, as
  // the kernel's version allows: no signal goes to other processes, no abstract socket of theirs is reached.
  void enforce() const;

 private:
  void allow(const std::filesystem::path& path, std::uint64_t access) const;

  int version_ = 0;
  int ruleset_ = -1;
};

}  // namespace longhaul::process
