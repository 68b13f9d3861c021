// SPDX-License-Identifier: Apache-2.0
// libcap-ng changes user, groups and the five sets in the required order.
#include "proxy/process/privileges.h"

#include <cap-ng.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace longhaul::process {
namespace {

constexpr std::array<unsigned, 2> kKept{CAP_NET_ADMIN, CAP_NET_BIND_SERVICE};

bool has(unsigned capability) { return capng_have_capability(CAPNG_PERMITTED, capability) == 1; }

[[noreturn]] void fail(const std::string& doing, const std::string& remedy) {
  throw std::runtime_error("the process cannot " + doing + ": " + std::strerror(errno) + remedy);
}

}  // namespace

void drop_privileges(const Account& account) {
  if (capng_get_caps_process() != 0) fail("read its capabilities", "");
  std::array<bool, kKept.size()> keep{};
  for (std::size_t i = 0; i < kKept.size(); ++i) keep[i] = has(kKept[i]);
  const bool may_shrink_bounds = has(CAP_SETPCAP);

  capng_clear(CAPNG_SELECT_ALL);
  for (std::size_t i = 0; i < kKept.size(); ++i)
    if (keep[i])
      capng_update(CAPNG_ADD, static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED), kKept[i]);

  // A change of user clears the signal that this process receives when its supervisor ends.
  int signal_at_parents_end = 0;
  ::prctl(PR_GET_PDEATHSIG, &signal_at_parents_end);
  if (::geteuid() != account.uid) {
    // A container may withhold CAP_SETPCAP. The bounding set only matters for execve, which is forbidden,
    // too.
    const auto flags = CAPNG_DROP_SUPP_GRP | CAPNG_CLEAR_AMBIENT | (may_shrink_bounds ? CAPNG_CLEAR_BOUNDING : 0);
    errno = 0;
    if (capng_change_id(static_cast<int>(account.uid), static_cast<int>(account.gid),
                        static_cast<capng_flags_t>(flags)) != 0)
      fail("switch to the user " + account.name,
           "; this needs CAP_SETUID and CAP_SETGID. Otherwise start it as that user with the capabilities it needs "
           "(AmbientCapabilities=CAP_NET_ADMIN CAP_NET_BIND_SERVICE in a systemd unit)");
  } else {
    if (may_shrink_bounds) capng_apply(CAPNG_SELECT_BOUNDS);
    if (capng_apply(static_cast<capng_select_t>(CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT)) != 0)
      fail("drop capabilities", "");
  }
  if (signal_at_parents_end != 0) ::prctl(PR_SET_PDEATHSIG, signal_at_parents_end);
}

bool has_net_admin() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) != 0) return ::geteuid() == 0;
  return (data[0].effective & (1u << CAP_NET_ADMIN)) != 0;
}

std::vector<std::string> effective_capabilities() {
  std::vector<std::string> names;
  if (capng_get_caps_process() != 0) return names;
  for (unsigned capability = 0; capability <= CAP_LAST_CAP; ++capability)
    if (capng_have_capability(CAPNG_EFFECTIVE, capability) == 1)
      if (const char* name = capng_capability_to_name(capability)) names.emplace_back(name);
  return names;
}

}  // namespace longhaul::process
