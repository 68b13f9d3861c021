// SPDX-License-Identifier: Apache-2.0
#include "cache/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "cache/descriptor.h"
#include "cache/error.h"

namespace longhaul::cache {
namespace {

// A kernel that is not preemptible keeps its CPU until a call has copied everything: megabytes would delay
// packets by milliseconds.
constexpr std::size_t kWrittenAtOnce = 256 << 10;

class SystemFiles final : public Files {
 public:
  Result<void> write(const std::string& path, const FileContent& content) override {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return last_error();
    for (;;) {
      auto part = content();
      if (!part) return part.error();
      if (part->empty()) return {};
      for (Bytes left = *part; !left.empty();) {
        ssize_t written = ::write(file.get(), left.data(), std::min(left.size(), kWrittenAtOnce));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return last_error();
        left = left.subspan(static_cast<std::size_t>(written));
      }
    }
  }

  Result<void> read(const std::string& path, std::uint64_t offset,
                    std::span<const MutableBytes> into) override {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return last_error();
    std::vector<iovec> vectors;
    vectors.reserve(into.size());
    for (MutableBytes part : into) vectors.push_back({part.data(), part.size()});
    for (std::size_t first = 0;;) {
      while (first < vectors.size() && vectors[first].iov_len == 0) ++first;
      if (first == vectors.size()) return {};
      int count = static_cast<int>(std::min<std::size_t>(vectors.size() - first, IOV_MAX));
      ssize_t moved = ::preadv(file.get(), &vectors[first], count, static_cast<off_t>(offset));
      if (moved < 0 && errno == EINTR) continue;
      if (moved < 0) return last_error();
      if (moved == 0) return make_error_code(StoreError::truncated);
      offset += static_cast<std::uint64_t>(moved);
      for (auto rest = static_cast<std::size_t>(moved); rest > 0;) {
        iovec& vector = vectors[first];
        std::size_t done = std::min(rest, vector.iov_len);
        vector.iov_base = static_cast<char*>(vector.iov_base) + done;
        vector.iov_len -= done;
        rest -= done;
        if (vector.iov_len == 0) ++first;
      }
    }
  }

  Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return last_error();
    return {};
  }

  Result<std::vector<FileEntry>> list(const std::string& folder) override {
    std::unique_ptr<DIR, decltype([](DIR* dir) { ::closedir(dir); })> dir(::opendir(folder.c_str()));
    if (!dir) return last_error();
    std::vector<FileEntry> entries;
    for (;;) {
      errno = 0;
      dirent* entry = ::readdir(dir.get());
      if (!entry && errno != 0) return last_error();
      if (!entry) return entries;
      struct stat status;
      // A file removed meanwhile counts as absent.
      if (::fstatat(::dirfd(dir.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(status.st_mode))
        entries.push_back({entry->d_name, static_cast<std::uint64_t>(status.st_size)});
    }
  }

  Result<void> make_folder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return last_error();
    return {};
  }
};

}  // namespace

Files& system_files() {
  static SystemFiles files;
  return files;
}

Result<DirectoryLock> DirectoryLock::take(const std::string& path, std::string& taken_by) {
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return last_error();
  DirectoryLock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    auto error = last_error();
    if (errno == EWOULDBLOCK) {
      char holder[32];
      ssize_t size = ::pread(descriptor, holder, sizeof holder, 0);
      taken_by.assign(holder, size > 0 ? static_cast<std::size_t>(size) : 0);
      while (!taken_by.empty() && taken_by.back() == '\n') taken_by.pop_back();
      if (taken_by.empty()) taken_by = "unknown";
    }
    return error;
  }
  // Only people read it, so a disk without room for it does no harm.
  std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) == 0) (void)!::pwrite(descriptor, pid.data(), pid.size(), 0);
  return lock;
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace longhaul::cache
