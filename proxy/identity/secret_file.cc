// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "proxy/config/read.h"

namespace longhaul::identity {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

SecretBytes read_secret(const std::filesystem::path& file, const SecretKind& kind) {
  const auto fail = [&](const std::string& sentence) {
    throw config::ConfigError(file.string() + ": " + sentence);
  };
  const auto unreadable = [&](int error) {
    fail("the " + std::string(kind.name) + " cannot be read: " + std::strerror(error) + "; " +
         std::string(kind.remedy) +
         ", and make it readable by root, or, for `longhaul reload`, by the user that the daemon runs as.");
  };
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (opened.number() < 0) unreadable(errno);
  struct stat status {};
  if (::fstat(opened.number(), &status) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    fail("other users can read this " + std::string(kind.name) +
         ": run chmod 600 on it, and replace it if they may have read it.");
  const std::size_t size =
      std::min(static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)), kind.most_bytes);
  SecretBytes content(size);
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t got = ::read(opened.number(), content.data() + filled, size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) unreadable(errno);
    if (got == 0) fail("it changed while it was read; try again.");
    filled += static_cast<std::size_t>(got);
  }
  return content;
}

}  // namespace longhaul::identity
