// SPDX-License-Identifier: Apache-2.0
// The system-call filter (seccomp): a list of the calls of the daemon and its libraries, and the treatment of
// all others.
#pragma once
#include <string>

namespace longhaul::process {

// Permanently, in every thread of this process:
//   calls on the list        pass
//   calls that only an intruder makes (execve, ptrace, mount, bpf, kernel modules, keys, …)
//                            kill the process, as does a call by another architecture's numbers
//   every other call         fails with ENOSYS: libraries have a second way for kernels that lack a call, so
//                            one that is missing on the list costs a feature and not the site; with
//                            UnknownCalls::kKill it kills the process
// The kernel logs forbidden calls if auditing is enabled. Also sets no_new_privs. Returns an empty text if
// the filter is in force, otherwise why the kernel lacks it. Throws std::runtime_error if the filter cannot
// be built, which is a bug.
enum class UnknownCalls { kFail, kKill };
[[nodiscard]] std::string filter_system_calls(UnknownCalls unknown);

}  // namespace longhaul::process
