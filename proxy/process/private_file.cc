// SPDX-License-Identifier: Apache-2.0
#include "proxy/process/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace longhaul::process {
namespace {

using boost::system::errc::errc_t;

boost::system::error_code last_error() { return {errno, boost::system::system_category()}; }

struct Closing {
  int descriptor;
  ~Closing() { ::close(descriptor); }
};

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool sync_directory(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return false;
  const Closing closing{descriptor};
  return ::fsync(descriptor) == 0;
}

}  // namespace

Result<PrivateFile> read_private_file(const std::filesystem::path& file, std::size_t most) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return last_error();
  const Closing closing{descriptor};
  struct stat about {};
  if (::fstat(descriptor, &about) != 0) return last_error();
  if (!S_ISREG(about.st_mode)) return make_error_code(errc_t::not_supported);
  PrivateFile read{std::string(most, '\0'), about.st_mode};
  std::size_t size = 0;
  while (size < most) {
    const ssize_t got = ::read(descriptor, read.text.data() + size, most - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return last_error();
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  read.text.resize(size);
  return read;
}

Result<void> make_private_file(const std::filesystem::path& file, std::string_view text, Durable durable) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return last_error();
  const Closing closing{descriptor};
  if (::fchmod(descriptor, 0600) == 0 && write_all(descriptor, text) && (durable == Durable::no || ::fsync(descriptor) == 0))
    return {};
  const auto error = last_error();
  ::unlink(file.c_str());
  return error;
}

Result<void> replace_private_file(const std::filesystem::path& file, std::string_view text, Durable durable) {
  const std::string draft = file.string() + ".new";
  ::unlink(draft.c_str());  // may be left by a killed process
  if (auto made = make_private_file(draft, text, durable); !made) return made.error();
  const bool renamed = ::rename(draft.c_str(), file.c_str()) == 0;
  if (renamed && (durable == Durable::no || sync_directory(file.parent_path()))) return {};
  const auto error = last_error();
  ::unlink(draft.c_str());
  return error;
}

Result<void> append_private_file(const std::filesystem::path& file, std::string_view text, Durable durable) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return last_error();
  const Closing closing{descriptor};
  if (!write_all(descriptor, text) || (durable == Durable::yes && ::fdatasync(descriptor) != 0)) return last_error();
  return {};
}

std::string reason_of(const boost::system::error_code& error) {
  if (error == errc_t::too_many_symbolic_link_levels) return "it is a symbolic link";
  if (error == errc_t::not_supported) return "it is not a regular file";
  return error.message();
}

}  // namespace longhaul::process
