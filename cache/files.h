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

// Returns the content of a file in pieces, from its beginning; an empty piece ends it. A piece is valid until
// the next call. An error ends the writing.
using FileContent = std::function<Result<Bytes>()>;

class Files {
 public:
  virtual ~Files() = default;
  // Creates a file that must not exist. After an error, including one from `content`, a part of it may exist.
  virtual Result<void> write(const std::string& path, const FileContent& content) = 0;
  // Fills all of `into`, one after the other, with the bytes from `offset` on.
  virtual Result<void> read(const std::string& path, std::uint64_t offset,
                            std::span<const MutableBytes> into) = 0;
  virtual Result<void> remove(const std::string& path) = 0;
  // The regular files in a folder, in no order.
  virtual Result<std::vector<FileEntry>> list(const std::string& folder) = 0;
  // Does nothing if the folder exists.
  virtual Result<void> make_folder(const std::string& path) = 0;
};

Files& system_files();

// The space that a file of `bytes` takes on the disk.
constexpr std::uint64_t disk_bytes(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// Locks a directory against every other process, and every other holder in this one, during its lifetime.
class DirectoryLock {
 public:
  // If another process holds the lock, sets `taken_by` to the content of the file, a pid.
  static Result<DirectoryLock> take(const std::string& path, std::string& taken_by);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace longhaul::cache
