// SPDX-License-Identifier: Apache-2.0
// The filter itself, in children that then do what an intruder would.
#include "proxy/process/system_calls.h"

#include <linux/netlink.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "proxy/process/in_child.h"

using namespace longhaul::process;

namespace {

constexpr int kNoFilter = 100;

// What `attempt` returns in a process under the filter.
ChildEnd filtered(const std::function<int()>& attempt, UnknownCalls unknown = UnknownCalls::kFail) {
  return in_child([&] { return filter_system_calls(unknown).empty() ? attempt() : kNoFilter; });
}

// The error of a call that fails; 0 for one that does not.
int error_of(long result) { return result < 0 ? errno : 0; }

}  // namespace

TEST_CASE("system calls that only an intruder makes kill the process") {
  CHECK(filtered([] {
          char program[] = "/bin/true";
          char* const arguments[] = {program, nullptr};
          return ::execve(program, arguments, nullptr);
        }).signal == SIGSYS);
  CHECK(filtered([] { return ::mount("none", "/mnt", "tmpfs", 0, nullptr); }).signal == SIGSYS);
  CHECK(filtered([] { return static_cast<int>(::syscall(SYS_bpf, 0, nullptr, 0)); }).signal == SIGSYS);
  CHECK(filtered([] { return static_cast<int>(::syscall(SYS_setns, 0, 0)); }).signal == SIGSYS);
  CHECK(filtered([] { return static_cast<int>(::syscall(SYS_process_vm_readv, 1, nullptr, 0, nullptr, 0, 0)); })
            .signal == SIGSYS);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // leaks are looked for from a process beside
  CHECK(filtered([] { return static_cast<int>(::syscall(SYS_ptrace, 0, 0, 0, 0)); }).signal == SIGSYS);
  CHECK(filtered([] { return error_of(::fork()); }).code == EPERM);
#endif
}

TEST_CASE("other system calls that the daemon does not need fail as if the kernel lacked them") {
  CHECK(filtered([] { return error_of(::syscall(SYS_io_uring_setup, 1, nullptr)); }).code == ENOSYS);
  CHECK(filtered([] { return error_of(::syscall(SYS_userfaultfd, 0)); }).code == ENOSYS);
  CHECK(filtered([] { return error_of(::syscall(SYS_setuid, 0)); }).code == ENOSYS);
  CHECK(filtered([] { return error_of(::kill(::getppid(), 0)); }).code == ENOSYS);
  CHECK(filtered([] { return error_of(::ioctl(0, TIOCSTI, "x")); }).code == ENOSYS);
}

TEST_CASE("if configured, all system calls that the daemon does not need kill the process") {
  const auto kill = UnknownCalls::kKill;
  CHECK(filtered([] { return error_of(::syscall(SYS_io_uring_setup, 1, nullptr)); }, kill).signal == SIGSYS);
  CHECK(filtered([] { return error_of(::ioctl(0, TIOCSTI, "x")); }, kill).signal == SIGSYS);
  CHECK(filtered([] { return ::mount("none", "/mnt", "tmpfs", 0, nullptr); }, kill).signal == SIGSYS);
  CHECK(filtered([] {
          int value = 0;
          std::thread([&] { value = 7; }).join();  // clone3 fails, clone passes
          return value;
        }, kill).code == 7);
}

TEST_CASE("only sockets of the families that the daemon uses can be created") {
  CHECK(filtered([] { return error_of(::socket(AF_PACKET, SOCK_RAW, 0)); }).code == ENOSYS);
  CHECK(filtered([] { return error_of(::socket(AF_ALG, SOCK_SEQPACKET, 0)); }).code == ENOSYS);
  CHECK(filtered([] { return error_of(::socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)); }).code == ENOSYS);
  for (const int family : {AF_INET, AF_INET6, AF_UNIX})
    CHECK(filtered([family] {
            const int error = error_of(::socket(family, SOCK_STREAM, 0));
            return error == EAFNOSUPPORT ? 0 : error;  // a host without IPv6
          }).code == 0);
  for (const int protocol : {NETLINK_ROUTE, NETLINK_NETFILTER})
    CHECK(filtered([protocol] { return error_of(::socket(AF_NETLINK, SOCK_RAW, protocol)); }).code == 0);
}

TEST_CASE("threads can be started under the filter, and existing threads are under it") {
  const auto under_filter = [] {
    int threads = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream status(thread.path() / "status");
      for (std::string line; std::getline(status, line);)
        if (line == "Seccomp:\t2") ++threads;
    }
    return threads;
  };
  CHECK(in_child([&] {
          bool go = false;  // a pipe would do as well; the thread only has to be there
          std::thread before([&] {
            while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE)) std::this_thread::yield();
          });
          const bool filters = filter_system_calls(UnknownCalls::kFail).empty();
          std::thread after([&] {
            while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE)) std::this_thread::yield();
          });
          const int counted = under_filter();
          __atomic_store_n(&go, true, __ATOMIC_RELEASE);
          before.join();
          after.join();
          return filters ? counted : kNoFilter;
        }).code == 3);
}

#ifdef __x86_64__
TEST_CASE("system call numbers of another architecture do not bypass the filter") {
  // getpid by the 32-bit entry: its number there, 20, is writev here.
  const auto end = filtered([] {
    long number = 20;
    asm volatile("int $0x80" : "+a"(number) : : "memory");
    return 0;
  });
  CHECK((end.signal == SIGSYS || end.signal == SIGSEGV));  // the latter where the kernel has no such entry
  // x32: the same entry, with bit 30 set.
  CHECK(filtered([] { return static_cast<int>(::syscall(0x4000'0000 + 39)); }).signal == SIGSYS);
}
#endif
