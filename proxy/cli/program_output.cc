// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace longhaul::cli {

std::string program_output(const std::vector<std::string>& words, OutputLimits limits) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return std::string("(no pipe: ") + std::strerror(errno) + ")\n";
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  std::string text;
  if (error != 0) {
    ::close(pipe[0]);
    return "(" + words.front() + " cannot be run: " + std::strerror(error) + ")\n";
  }
  const auto deadline = std::chrono::steady_clock::now() + limits.time;
  bool ended = false;
  while (!ended && text.size() < limits.bytes) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waits{.fd = pipe[0], .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&waits, 1, static_cast<int>(left.count())) <= 0) break;
    std::array<char, 16384> piece;
    const ssize_t size = ::read(pipe[0], piece.data(), piece.size());
    ended = size <= 0;
    if (size > 0) text.append(piece.data(), static_cast<std::size_t>(size));
  }
  ::close(pipe[0]);
  if (!ended) {
    ::kill(child, SIGKILL);
    text += "\n(cut off: longer than the limit of time or size)\n";
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (ended && WIFEXITED(status) && WEXITSTATUS(status) != 0)
    text += "(exit code " + std::to_string(WEXITSTATUS(status)) + ")\n";
  return text;
}

}  // namespace longhaul::cli
