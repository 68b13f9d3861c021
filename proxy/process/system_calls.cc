// SPDX-License-Identifier: Apache-2.0
// The lists, by purpose. libseccomp has the numbers and generates the filter.
#include "proxy/process/system_calls.h"

#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace longhaul::process {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Names that this libseccomp or this architecture does not have are skipped.
constexpr const char* kAllowed[] = {
    // Memory.
    "brk", "madvise", "membarrier", "mincore", "mlock", "mmap", "mprotect", "mremap", "msync", "munlock",
    "munmap",
    // Threads, locks, processors.
    "exit", "exit_group", "futex", "futex_waitv", "get_robust_list", "getcpu", "getpriority", "gettid", "rseq",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getparam",
    "sched_getscheduler", "sched_yield", "set_robust_list", "set_tid_address", "setpriority",
    // Signals to itself; kill and tgkill are below.
    "pause", "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "sigaltstack",
    // Time.
    "clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time", "timerfd_create",
    "timerfd_gettime", "timerfd_settime", "times",
    // Waiting.
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd",
    "eventfd2", "poll", "ppoll", "pselect6", "select",
    // Descriptors.
    "close", "close_range", "dup", "dup2", "dup3", "fcntl", "lseek", "pipe", "pipe2", "pread64", "preadv",
    "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readv", "sendfile", "splice", "tee", "vmsplice",
    "write", "writev",
    // Files.
    "access", "chmod", "copy_file_range", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchmod", "fchmodat",
    "fdatasync", "flock", "fstat", "fstatfs", "fsync", "ftruncate", "getcwd", "getdents64", "link", "linkat",
    "lstat", "mkdir", "mkdirat", "newfstatat", "open", "openat", "readahead", "readlink", "readlinkat",
    "rename", "renameat", "renameat2", "rmdir", "stat", "statfs", "statx", "sync_file_range", "truncate",
    "umask", "unlink", "unlinkat", "utimensat",
    // Sockets; socket itself is below.
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom",
    "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown", "socketpair",
    // Information about the process and the host.
    "capget", "getegid", "geteuid", "getgid", "getgroups", "getpgrp", "getpid", "getppid", "getrandom",
    "getresgid", "getresuid", "getrlimit", "getrusage", "getuid", "prlimit64", "setrlimit", "sysinfo", "uname"};

// Calls that no library used here ever makes: only an intruder makes them.
constexpr const char* kDeadly[] = {
    "acct", "add_key", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module", "execve",
    "execveat", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "ioperm", "iopl",
    "kexec_file_load", "kexec_load", "keyctl", "mknod", "mknodat", "mount", "mount_setattr", "move_mount",
    "open_by_handle_at", "open_tree", "pidfd_getfd", "pivot_root", "process_vm_readv", "process_vm_writev",
    "reboot", "request_key", "setdomainname", "sethostname", "setns", "settimeofday", "swapoff", "swapon",
    "umount", "umount2", "unshare"};

// LeakSanitizer stops the threads from a separate process; ThreadSanitizer needs more memory calls.
constexpr const char* kForSanitizers[] = {"arch_prctl", "clone",  "getdents",          "personality",
                                          "prctl",      "ptrace", "sched_setaffinity", "wait4"};

class Filter {
 public:
  explicit Filter(UnknownCalls unknown)
      : unknown_(unknown),
        context_(seccomp_init(unknown == UnknownCalls::kKill ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(ENOSYS))) {
    if (!context_) throw std::runtime_error("the system-call filter cannot be built");
    // x32 and 32-bit calls have other numbers, which would bypass the filter.
    set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    set(SCMP_FLTATR_CTL_TSYNC, 1);
    set(SCMP_FLTATR_CTL_NNP, 1);
    // Before Linux 5.16 a filter also disabled speculation, which only processes that run foreign code need.
    (void)seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_SSB, 1);
    (void)seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_LOG, 1);
    set(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree
  }

  void allow(const char* name) { add(SCMP_ACT_ALLOW, name, {}); }
  void kill(const char* name) {
    if (unknown_ != UnknownCalls::kKill)
      add(SCMP_ACT_KILL_PROCESS, name, {});  // otherwise it is not on the list
  }
  void fail(const char* name, int error) { add(SCMP_ACT_ERRNO(static_cast<unsigned>(error)), name, {}); }

  // Arguments of type int: the kernel ignores the upper half of the register.
  using Conditions = std::vector<scmp_arg_cmp>;
  static scmp_arg_cmp is(unsigned argument, std::uint64_t value) {
    return {argument, SCMP_CMP_MASKED_EQ, 0xffff'ffffu, value};
  }
  static scmp_arg_cmp has(unsigned argument, std::uint64_t bit) {
    return {argument, SCMP_CMP_MASKED_EQ, bit, bit};
  }
  static scmp_arg_cmp lacks(unsigned argument, std::uint64_t bit) {
    return {argument, SCMP_CMP_MASKED_EQ, bit, 0};
  }
  void allow(const char* name, const Conditions& conditions) { add(SCMP_ACT_ALLOW, name, conditions); }
  void fail(const char* name, int error, const Conditions& conditions) {
    add(SCMP_ACT_ERRNO(static_cast<unsigned>(error)), name, conditions);
  }

  int load() { return seccomp_load(context_.get()); }

 private:
  void set(scmp_filter_attr attribute, std::uint32_t value) {
    if (const int error = seccomp_attr_set(context_.get(), attribute, value); error != 0)
      throw std::runtime_error(std::string("the system-call filter cannot be built: ") + std::strerror(-error));
  }
  void add(std::uint32_t action, const char* name, const Conditions& conditions) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number < 0) return;
    const int error = seccomp_rule_add_array(context_.get(), action, number,
                                             static_cast<unsigned>(conditions.size()), conditions.data());
    if (error != 0)
      throw std::runtime_error(std::string("the system-call filter cannot be built: ") + name + ": " +
                               std::strerror(-error));
  }

  struct Release {
    void operator()(void* context) const { seccomp_release(context); }
  };
  UnknownCalls unknown_;
  std::unique_ptr<void, Release> context_;
};

// Adds calls that are allowed only with certain arguments.
void add_conditional(Filter& filter, UnknownCalls unknown) {
  using F = Filter;
  for (const int family : {AF_INET, AF_INET6, AF_UNIX})
    filter.allow("socket", {F::is(0, static_cast<std::uint64_t>(family))});
  for (const int protocol : {NETLINK_ROUTE, NETLINK_NETFILTER, NETLINK_SOCK_DIAG})
    filter.allow("socket", {F::is(0, AF_NETLINK), F::is(2, static_cast<std::uint64_t>(protocol))});

  // Not TIOCSTI, which injects input into the terminal that started the daemon.
  constexpr unsigned long kRequests[] = {FIONBIO, FIONREAD, FIOASYNC, SIOCATMARK, TIOCOUTQ, SIOCOUTQNSD, TCGETS,
                                         TIOCGWINSZ, SIOCGIFINDEX, SIOCGIFNAME, SIOCGIFCONF, SIOCGIFFLAGS, SIOCGIFMTU};
  for (const unsigned long request : kRequests) filter.allow("ioctl", {F::is(1, request)});

  // The C library tries clone3 first and falls back to clone: its flags lie in memory, where a filter cannot
  // see them.
  if (unknown == UnknownCalls::kKill) filter.fail("clone3", ENOSYS);

  const auto self = static_cast<std::uint64_t>(::getpid());
  filter.allow("tgkill", {F::is(0, self)});
  filter.allow("kill", {F::is(0, self)});

  if (kSanitized) return;
  // Allows threads, but not processes.
  filter.allow("clone", {F::has(0, CLONE_THREAD)});
  filter.fail("clone", EPERM, {F::lacks(0, CLONE_THREAD)});
  filter.fail("fork", EPERM);
  filter.fail("vfork", EPERM);
  filter.kill("ptrace");
  for (const int option : {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE})
    filter.allow("prctl", {F::is(0, static_cast<std::uint64_t>(option))});
}

}  // namespace

std::string filter_system_calls(UnknownCalls unknown) {
  Filter filter(unknown);
  for (const char* name : kAllowed) filter.allow(name);
  for (const char* name : kDeadly) filter.kill(name);
  add_conditional(filter, unknown);
  if (kSanitized)
    for (const char* name : kForSanitizers) filter.allow(name);
  if (const int error = filter.load(); error != 0)
    return std::string("the kernel rejects the system-call filter: ") + std::strerror(-error);
  return {};
}

}  // namespace longhaul::process
