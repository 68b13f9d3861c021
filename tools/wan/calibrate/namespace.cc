// SPDX-License-Identifier: Apache-2.0
// unshare(2), setns(2), and children that the kernel ends with us.
#include "tools/wan/calibrate/namespace.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <stdexcept>

namespace longhaul::wan {
namespace {

Descriptor current_namespace() {
  return Descriptor{must(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "network namespace")};
}

struct Pipe {
  Descriptor reading;
  Descriptor writing;
};

Pipe make_pipe() {
  std::array<int, 2> ends;
  must(::pipe2(ends.data(), O_CLOEXEC), "pipe");
  return {Descriptor{ends[0]}, Descriptor{ends[1]}};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

Namespace::Namespace() {
  const Descriptor before = current_namespace();
  must(::unshare(CLONE_NEWNET), "make a network namespace (needs root)");
  descriptor_ = current_namespace();
  must(::setns(before.get(), CLONE_NEWNET), "return from a network namespace");
}

std::string Namespace::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor_.get());
}

Inside::Inside(const Namespace& where) : outside_(current_namespace()) {
  must(::setns(where.descriptor(), CLONE_NEWNET), "enter a network namespace");
}

Inside::~Inside() { ::setns(outside_.get(), CLONE_NEWNET); }

Program::Program(const Namespace& where, const std::vector<std::string>& words) : command_(joined(words)) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = must(::fork(), "fork");
  if (pid_ == 0) {  // only calls that are safe between fork and exec
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::getppid() == parent && ::setns(where.descriptor(), CLONE_NEWNET) == 0 &&
        ::dup2(out.writing.get(), 1) == 1 && ::dup2(err.writing.get(), 2) == 2)
      ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  out_ = std::move(out.reading);
  err_ = std::move(err.reading);
}

Program::~Program() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Program::fail(const std::string& what) const {
  const std::string& said = err_text_.empty() ? out_text_ : err_text_;
  throw std::runtime_error("\"" + command_ + "\" " + what + (said.empty() ? "" : ": " + said));
}

bool Program::read_more(std::chrono::steady_clock::time_point deadline) {
  std::array<pollfd, 2> ends{{{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (::poll(ends.data(), ends.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0))) == 0)
    fail("takes too long");
  const auto take = [](const pollfd& end, Descriptor& descriptor, std::string& text) {
    if (end.revents == 0) return;
    std::array<char, 4096> buffer;
    const ssize_t size = ::read(end.fd, buffer.data(), buffer.size());
    if (size > 0) text.append(buffer.data(), static_cast<std::size_t>(size));
    if (size == 0) descriptor = Descriptor{};
  };
  take(ends[0], out_, out_text_);
  take(ends[1], err_, err_text_);
  return out_ || err_;
}

void Program::await_text(const std::string& text, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (out_text_.find(text) == std::string::npos && err_text_.find(text) == std::string::npos)
    if (!read_more(deadline)) fail("ended early");
}

std::string Program::finish(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (read_more(deadline)) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) fail("could not be started");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("failed");
  return out_text_;
}

void Program::signal(int number) const { ::kill(pid_, number); }

std::string run_inside(const Namespace& where, const std::vector<std::string>& words) {
  return Program(where, words).finish(std::chrono::seconds{30});
}

}  // namespace longhaul::wan
