// SPDX-License-Identifier: Apache-2.0
// Drops root's identity, supplementary groups, and all capabilities except two. system_calls.h and
// file_access.h restrict the rest.
#pragma once
#include <string>
#include <vector>

#include "proxy/process/account.h"

namespace longhaul::process {

// Becomes `account`, which may be the current user, and keeps at most two of its capabilities: CAP_NET_ADMIN
// for packet rules, routes, IP_TRANSPARENT, SO_MARK and restricted congestion controls; CAP_NET_BIND_SERVICE
// for ports below 1024, of listeners and of clients' source ports towards servers. No other process or thread
// inherits them, and no later execve gains any: the inheritable, ambient and bounding sets are empty. Called
// before the first thread: capabilities belong to a thread. Throws std::runtime_error with one sentence if
// the kernel refuses.
void drop_privileges(const Account& account);

// Whether this thread may change packet rules and routes of its network namespace.
bool has_net_admin();

// The capabilities of this thread, as in capabilities(7) without "CAP_", in lower case: "net_admin".
std::vector<std::string> effective_capabilities();

}  // namespace longhaul::process
