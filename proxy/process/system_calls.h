// SPDX-License-Identifier: Apache-2.0
// The system-call filter (seccomp): a list of the calls of the daemon and its libraries, and the treatment of all
// others.
#pragma once
#include <string>

namespace longhaul::process {

// From here on, in every thread of this process and for good:
//   calls on the list        pass
//   calls that only an intruder makes (execve, ptrace, mount, bpf, kernel modules, keys, …)
//                            kill the process, as does a call by another architecture's numbers
//   every other call         fails with ENOSYS: libraries have a second way for kernels that lack a call, so
//                            one that is missing on the list costs a feature and not the site; with
//                            UnknownCalls::kKill it kills the process
// Forbidden calls are logged by the kernel where it audits. Also sets no_new_privs. Empty: in force; else why
// the kernel does not have it. Throws std::runtime_error where the filter cannot be built: a defect of ours.
enum class UnknownCalls { kFail, kKill };
[[nodiscard]] std::string filter_system_calls(UnknownCalls unknown);

}  // namespace longhaul::process
