// SPDX-License-Identifier: Apache-2.0
// A file that fails a check is replaced, not repaired: others may have read it, and the data that it
// encrypted can be sent again.
#include "cache/key_file.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>

#include "cache/descriptor.h"
#include "cache/error.h"
#include "crypto/hkdf.h"

namespace longhaul::cache {
namespace {

using KeyBytes = Secret<DictionaryKey::kBytes>;

constexpr std::size_t kLeastCredential = 32, kMostCredential = 4096;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// A file's name is on the disk, or removed from it, once its folder is synced.
Result<void> sync_folder_of(const std::string& path) {
  Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return last_error();
  return {};
}

bool draw(KeyBytes& key) {
  return RAND_bytes(reinterpret_cast<unsigned char*>(key.bytes.data()), DictionaryKey::kBytes) == 1;
}

Result<void> write_key(int file, const KeyBytes& key) {
  const ssize_t written = ::pwrite(file, key.bytes.data(), key.bytes.size(), 0);
  if (written < 0) return last_error();
  if (written != DictionaryKey::kBytes) return make_error_code(StoreError::truncated);
  if (::fsync(file) != 0) return last_error();
  return {};
}

// The problem of an open key file; empty: none.
std::string fault_of(int file, const std::string& path) {
  struct stat about{};
  struct stat folder{};
  if (::fstat(file, &about) != 0) return last_error().message();
  if (!S_ISREG(about.st_mode)) return "it is not a regular file";
  // The folder's owner can put any file there anyway.
  if (about.st_uid != ::geteuid() &&
      (::stat(folder_of(path).c_str(), &folder) != 0 || about.st_uid != folder.st_uid))
    return "it belongs to another user";
  if ((about.st_mode & 077) != 0) return "other users may read or change it";
  if (about.st_nlink != 1) return "it has another hard link";
  if (about.st_size != DictionaryKey::kBytes) return "its size is not 32 bytes";
  return {};
}

}  // namespace

KeyFile::KeyFile(std::string path, const std::string& credential_path) : path_(std::move(path)) {
  if (credential_path.empty()) return;
  Descriptor file(::open(credential_path.c_str(), O_RDONLY | O_CLOEXEC));
  SecretBytes read(kMostCredential);
  const ssize_t size = file ? ::read(file.get(), read.data(), read.size()) : -1;
  if (size < 0)
    throw std::runtime_error("the credential " + credential_path +
                             " cannot be read: " + last_error().message());
  if (static_cast<std::size_t>(size) < kLeastCredential)
    throw std::runtime_error("the credential " + credential_path +
                             " is too short for a key: give it 32 random bytes or more");
  credential_ = SecretBytes(static_cast<std::size_t>(size));
  std::copy_n(read.data(), credential_.size(), credential_.data());
}

DictionaryKey KeyFile::key_from(const KeyBytes& stored) const {
  if (credential_.empty()) return DictionaryKey(stored);
  KeyBytes both;
  hkdf(stored.bytes, credential_, as_bytes("longhaul dictionary key"), both.bytes);
  return DictionaryKey(both);
}

Result<DictionaryKey> KeyFile::load_or_make(std::string& note) const {
  note.clear();
  // Without O_NONBLOCK a pipe under that name would block this thread.
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string fault;
  if (file) {
    fault = fault_of(file.get(), path_);
    KeyBytes stored;
    if (fault.empty() &&
        ::pread(file.get(), stored.bytes.data(), stored.bytes.size(), 0) == DictionaryKey::kBytes)
      return key_from(stored);
    if (fault.empty()) fault = "it cannot be read";
  } else if (errno == ELOOP) {
    fault = "it is a symbolic link";
  } else if (errno != ENOENT) {
    fault = last_error().message();
  }
  if (!fault.empty()) {
    note = "the key " + path_ + " is replaced (" + fault +
           "): stored data can no longer be decrypted and is discarded";
    if (auto destroyed = destroy(); !destroyed) return destroyed.error();
  }
  return make();
}

Result<DictionaryKey> KeyFile::make() const {
  KeyBytes fresh;
  if (!draw(fresh)) return make_error_code(StoreError::no_randomness);
  Descriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return last_error();
  if (auto written = write_key(file.get(), fresh); !written) return written.error();
  if (auto synced = sync_folder_of(path_); !synced) return synced.error();
  return key_from(fresh);
}

Result<void> KeyFile::destroy() const {
  Descriptor file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return {};
  // Random bytes rather than zeros: a crash before the file is removed must not leave a publicly known key. A
  // file of another kind, or with another name, must not be overwritten.
  struct stat about {};
  KeyBytes noise;
  if (file && ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 1 &&
      draw(noise))
    (void)write_key(file.get(), noise);
  if (::unlink(path_.c_str()) != 0) return last_error();
  return sync_folder_of(path_);
}

}  // namespace longhaul::cache
