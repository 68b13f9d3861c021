// SPDX-License-Identifier: Apache-2.0
// Walks a path as the kernel does, link by link, and checks each directory before it uses its entries.
#include "proxy/process/own_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>

namespace longhaul::process {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;
constexpr mode_t kOpenToOthers = S_IRWXG | S_IRWXO;
constexpr int kMostLinks = 40;  // as many as the kernel follows

[[noreturn]] void unsafe(const fs::path& path, const std::string& why, const std::string& remedy) {
  throw UnsafeDirectory("the directory " + path.string() + " " + why + ": " + remedy);
}

[[noreturn]] void failed(const fs::path& path, const std::string& doing) {
  throw UnsafeDirectory("the directory " + path.string() + " cannot be " + doing + ": " + std::strerror(errno));
}

void check_owner(const fs::path& path, const struct stat& about, uid_t user) {
  if (about.st_uid == 0 || about.st_uid == user) return;
  unsafe(path, "belongs to " + name_of(about.st_uid) + ", which could replace the daemon's files",
         "chown " + name_of(user) + " it, or configure another directory");
}

void check_on_the_way(const fs::path& path, const struct stat& about, uid_t user) {
  check_owner(path, about, user);
  if ((about.st_mode & kWritableByOthers) != 0 && (about.st_mode & S_ISVTX) == 0)
    unsafe(path, "is writable by other users, which could replace the daemon's files below it",
           "run chmod go-w on it, or configure another directory");
}

void check_last(const fs::path& path, const struct stat& about, uid_t user) {
  check_owner(path, about, user);
  if ((about.st_mode & kWritableByOthers) != 0)
    unsafe(path, "is writable by other users, which could have replaced the daemon's files",
           "check its contents, then run chmod 700 on it");
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

int open_directory(int at, const char* name) {
  return ::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

std::vector<std::string> entries_of(int directory) {
  std::vector<std::string> names;
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return names;
  DIR* stream = ::fdopendir(copy);
  if (stream == nullptr) {
    ::close(copy);
    return names;
  }
  while (const dirent* entry = ::readdir(stream))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
  ::closedir(stream);
  return names;
}

// Gives the entry, and everything below it, to the account. Failures are detected when the daemon opens the
// file.
void give(int directory, const std::string& name, const Account& account) {
  struct stat about {};
  if (::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISDIR(about.st_mode) && (!S_ISREG(about.st_mode) || about.st_nlink > 1)) return;
  (void)!::fchownat(directory, name.c_str(), account.uid, account.gid, AT_SYMLINK_NOFOLLOW);
  if (!S_ISDIR(about.st_mode)) return;
  const Descriptor inside(open_directory(directory, name.c_str()));
  if (inside.get() < 0) return;
  for (const std::string& entry : entries_of(inside.get())) give(inside.get(), entry, account);
}

void take_over(const fs::path& path, int directory, const Account& account,
               const std::vector<std::string>& own_names) {
  const auto entries = entries_of(directory);
  const auto is_own = [&](const std::string& name) {
    return std::find(own_names.begin(), own_names.end(), name) != own_names.end();
  };
  if (!entries.empty() && std::none_of(entries.begin(), entries.end(), is_own))
    unsafe(path, "belongs to root and contains other files than the daemon's",
           "configure a directory for the daemon alone, or chown " + account.name + " this one");
  for (const std::string& name : entries)
    if (is_own(name)) give(directory, name, account);
  if (::fchown(directory, account.uid, account.gid) != 0) failed(path, "given to " + account.name);
}

// All users can traverse parent directories.
void make(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error)) return;
  if (path.has_parent_path() && !fs::exists(path.parent_path(), error)) {
    make(path.parent_path());
    (void)::chmod(path.parent_path().c_str(), 0755);
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) failed(path, "created");
}

}  // namespace

fs::path check_directory(const fs::path& directory, uid_t user) {
  std::deque<std::string> rest;
  const fs::path absolute = fs::absolute(directory);
  for (const auto& part : absolute.relative_path()) rest.push_back(part.string());
  fs::path reached = "/";
  struct stat about {};
  for (int links = 0; !rest.empty();) {
    const std::string name = std::move(rest.front());
    rest.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      reached = reached.parent_path();
      continue;
    }
    // The entries of `reached` are only safe if no other user can change them.
    if (::lstat(reached.c_str(), &about) == 0) check_on_the_way(reached, about, user);
    const fs::path next = reached / name;
    if (::lstat(next.c_str(), &about) != 0) {
      if (errno != ENOENT) failed(next, "examined");
      reached = next;  // so are those below it
      continue;
    }
    if (S_ISLNK(about.st_mode)) {
      check_owner(next, about, user);
      std::error_code error;
      const fs::path target = fs::read_symlink(next, error);
      if (error || ++links > kMostLinks) unsafe(next, "is a broken symbolic link", "remove it");
      if (target.is_absolute()) reached = "/";
      std::deque<std::string> parts;
      for (const auto& part : target.relative_path()) parts.push_back(part.string());
      rest.insert(rest.begin(), parts.begin(), parts.end());
      continue;
    }
    if (!S_ISDIR(about.st_mode)) unsafe(next, "is a file", "configure another directory");
    reached = next;
  }
  if (::lstat(reached.c_str(), &about) == 0) check_last(reached, about, user);
  return reached;
}

std::string why_not_made(const fs::path& directory) {
  fs::path first = fs::absolute(directory);
  std::error_code error;
  if (fs::exists(first, error)) return "";
  while (first.has_relative_path() && !fs::exists(first.parent_path(), error)) first = first.parent_path();
  if (::mkdir(first.c_str(), 0700) == 0) {
    ::rmdir(first.c_str());
    return "";
  }
  if (errno == EEXIST) return "";
  return "the directory " + directory.string() + " cannot be created" +
         (first == directory ? "" : " (" + first.string() + ")") + ": " + std::strerror(errno) +
         ". Remedy: configure another directory.";
}

fs::path prepare_directory(const fs::path& directory, const Account& account,
                           const std::vector<std::string>& own_names) {
  const fs::path path = check_directory(directory, account.uid);
  make(path);
  const Descriptor opened(open_directory(AT_FDCWD, path.c_str()));
  struct stat about {};
  if (opened.get() < 0 || ::fstat(opened.get(), &about) != 0) failed(path, "opened");
  check_last(path, about, account.uid);
  if (about.st_uid != account.uid && ::geteuid() == 0) take_over(path, opened.get(), account, own_names);
  if ((about.st_mode & kOpenToOthers) != 0 && ::fchmod(opened.get(), 0700) != 0) failed(path, "made private");
  return path;
}

void check_reachable(const fs::path& directory, const Account& account) {
  fs::path reached = "/";
  for (const auto& part : directory.relative_path()) {
    if (::faccessat(AT_FDCWD, reached.c_str(), X_OK, AT_EACCESS) != 0)
      unsafe(reached, "cannot be traversed by the user " + account.name + ", as the daemon's directories require",
             "run chmod o+x on it, or configure another directory");
    reached /= part;
  }
  if (::faccessat(AT_FDCWD, reached.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) != 0)
    unsafe(reached, std::string("cannot be used by ") + account.name + " (" + std::strerror(errno) + ")",
           "chown " + account.name + " it");
}

}  // namespace longhaul::process
