// SPDX-License-Identifier: Apache-2.0
// Restricts the files that the daemon can open (Landlock): it may read system files and its configuration,
// and write its own files. Without Landlock only file modes apply.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace longhaul::process {

// Created while the paths are still reachable, enforced after the change of user. Open descriptors stay as
// they are.
class FileAccess {
 public:
  // Directories include everything below them; paths that do not exist are skipped. Throws std::runtime_error
  // if the kernel has Landlock and refuses it.
  FileAccess(const std::vector<std::filesystem::path>& read, const std::vector<std::filesystem::path>& write);
  ~FileAccess();
  FileAccess(const FileAccess&) = delete;
  FileAccess& operator=(const FileAccess&) = delete;

  // The kernel's version of the interface; 0 if it has none, or did not enable it at boot.
  int version() const { return version_; }
  // Permanent, for this thread and the threads that it starts. Needs no_new_privs. Afterwards no file can be
  // executed and, if the kernel's version supports it, no signals can be sent to other processes and their
  // abstract sockets cannot be reached.
  void enforce() const;

 private:
  void allow(const std::filesystem::path& path, std::uint64_t access) const;

  int version_ = 0;
  int ruleset_ = -1;
};

}  // namespace longhaul::process
