// SPDX-License-Identifier: Apache-2.0
// The file operations of the store, as an interface, so that tests can make any of them fail. RocksDB does
// its own input and output.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codecs/bytes.h"
#include "codecs/result.h"

namespace longhaul::cache {

struct FileEntry {
  std::string name;
  std::uint64_t bytes = 0;
};

// Gives what a file shall hold, from its beginning on and some at a time; nothing: that was all. What it gave
// is valid until it is called again. An error ends the writing.
using FileContent = std::function<Result<Bytes>()>;

class Files {
 public:
  virtual ~Files() = default;
  // Makes a file that was not there. After an error, of the content's too, part of it may be there.
  virtual Result<void> write(const std::string& path, const FileContent& content) = 0;
  // Fills all of `into`, one after the other, with what begins at `offset`.
  virtual Result<void> read(const std::string& path, std::uint64_t offset,
                            std::span<const MutableBytes> into) = 0;
  virtual Result<void> remove(const std::string& path) = 0;
  // The regular files in a folder, in no order.
  virtual Result<std::vector<FileEntry>> list(const std::string& folder) = 0;
  // Nothing happens if it is there.
  virtual Result<void> make_folder(const std::string& path) = 0;
};

Files& system_files();

// What a file of `bytes` takes from the disk.
constexpr std::uint64_t disk_bytes(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// Holds a directory against every other process, and every other holder in this one, while it lives.
class DirectoryLock {
 public:
  // `taken_by` is set if another process has it: the content of the file, a pid.
  static Result<DirectoryLock> take(const std::string& path, std::string& taken_by);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace longhaul::cache
