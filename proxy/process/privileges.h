// SPDX-License-Identifier: Apache-2.0
// Drops root's identity, supplementary groups, and all capabilities but two. system_calls.h and file_access.h
// restrict the rest.
#pragma once
#include <string>
#include <vector>

#include "proxy/process/account.h"

namespace longhaul::process {

// Becomes `account`, which may be the user that this process already is, and keeps of the capabilities it has
//   CAP_NET_ADMIN         packet rules, routes, IP_TRANSPARENT, SO_MARK, congestion control that is not for all
//   CAP_NET_BIND_SERVICE  ports below 1024: listeners, and clients' source ports towards servers
// No other process or thread inherits them, and no later execve gains any: the inheritable, ambient and bounding
// sets are empty. Called before the first thread: capabilities belong to a thread. Throws std::runtime_error with
// one sentence where the kernel refuses.
void drop_privileges(const Account& account);

// What this thread may use now, as in capabilities(7) without "CAP_", in lower case: "net_admin".
std::vector<std::string> effective_capabilities();

}  // namespace longhaul::process
