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

#include "cache/error.h"

namespace longhaul::cache {
namespace {

boost::system::error_code last_error() { return {errno, boost::system::system_category()}; }

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// A kernel that is not preemptible keeps its CPU until a call has copied everything: megabytes would make
// packets wait for milliseconds.
constexpr std::size_t kWrittenAtOnce = 256 << 10;

// How many of `vectors` hold no more than `most` bytes together, one at least.
int fitting(std::span<const iovec> vectors, std::size_t most) {
  std::size_t count = 0;
  for (std::size_t bytes = 0; count < vectors.size(); ++count)
    if ((bytes += vectors[count].iov_len) > most) break;
  return static_cast<int>(std::max<std::size_t>(count, 1));
}

// Calls `transfer(iovecs, count)` until all of `vectors` is moved, whatever part of them a call takes.
template <class Transfer>
Result<void> move_all(std::vector<iovec>& vectors, Transfer&& transfer) {
  std::size_t first = 0;
  for (;;) {
    while (first < vectors.size() && vectors[first].iov_len == 0) ++first;
    if (first == vectors.size()) return {};
    int count = static_cast<int>(std::min<std::size_t>(vectors.size() - first, IOV_MAX));
    ssize_t moved = transfer(&vectors[first], count);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return last_error();
    if (moved == 0) return make_error_code(StoreError::truncated);
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

class SystemFiles final : public Files {
 public:
  Result<void> write(const std::string& path, std::span<const Bytes> parts) override {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return last_error();
    std::vector<iovec> vectors;
    vectors.reserve(parts.size());
    for (Bytes part : parts) vectors.push_back({const_cast<std::byte*>(part.data()), part.size()});
    return move_all(vectors, [&](iovec* from, int count) {
      count = fitting({from, static_cast<std::size_t>(count)}, kWrittenAtOnce);
      return count == 1 ? ::write(file.get(), from->iov_base, std::min(from->iov_len, kWrittenAtOnce))
                        : ::writev(file.get(), from, count);
    });
  }

  Result<void> read(const std::string& path, std::uint64_t offset,
                    std::span<const MutableBytes> into) override {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return last_error();
    std::vector<iovec> vectors;
    vectors.reserve(into.size());
    for (MutableBytes part : into) vectors.push_back({part.data(), part.size()});
    return move_all(vectors, [&](iovec* to, int count) {
      ssize_t moved = ::preadv(file.get(), to, count, static_cast<off_t>(offset));
      if (moved > 0) offset += static_cast<std::uint64_t>(moved);
      return moved;
    });
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
      // One that went away meanwhile is not there.
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
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
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
  // Only people read it, so that a disk without room for it does no harm.
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
