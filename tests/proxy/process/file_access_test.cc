// SPDX-License-Identifier: Apache-2.0
#include "proxy/process/file_access.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

#include "proxy/process/in_child.h"
#include "proxy/temporary_folder.h"

using namespace longhaul;
using namespace longhaul::process;

namespace {

int open_error(const std::filesystem::path& path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0600) < 0 ? errno : 0;
}

}  // namespace

TEST_CASE("files outside of the two lists cannot be opened, changed or executed") {
  if (FileAccess({}, {}).version() == 0) {
    WARN("this kernel has no Landlock");
    return;
  }
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return folder.path() / name; };
  for (const char* name : {"read", "write", "neither"}) {
    std::filesystem::create_directory(at(name));
    folder.write(std::string(name) + "/file", "bytes");
  }
  folder.write("alone", "bytes");
  const auto confined = [&](const std::function<int()>& attempt) {
    return in_child([&] {
             const FileAccess access({at("read"), at("missing")}, {at("write"), at("alone")});
             ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
             access.enforce();
             return attempt();
           })
        .code;
  };
  CHECK(confined([&] { return open_error(at("read/file"), O_RDONLY); }) == 0);
  CHECK(confined([&] { return open_error(at("read/file"), O_WRONLY); }) == EACCES);
  CHECK(confined([&] { return open_error(at("read/new"), O_WRONLY | O_CREAT); }) == EACCES);
  CHECK(confined([&] { return open_error(at("neither/file"), O_RDONLY); }) == EACCES);
  CHECK(confined([&] { return open_error(at("write/file"), O_RDWR | O_TRUNC); }) == 0);
  CHECK(confined([&] { return open_error(at("write/new"), O_WRONLY | O_CREAT); }) == 0);
  CHECK(confined([&] { return open_error(at("alone"), O_WRONLY | O_TRUNC); }) == 0);
  CHECK(confined([&] { return ::rename(at("write/file").c_str(), at("write/other").c_str()) == 0 ? 0 : errno; }) == 0);
  CHECK(confined([&] { return ::symlink("/etc/passwd", at("write/link").c_str()) == 0 ? 0 : errno; }) == EACCES);
  CHECK(confined([&] {
          ::execl("/bin/true", "true", nullptr);
          return errno;
        }) == EACCES);
  if (FileAccess({}, {}).version() >= 6)
    CHECK(confined([&] { return ::kill(::getppid(), 0) == 0 ? 0 : errno; }) == EPERM);
}
