// SPDX-License-Identifier: Apache-2.0
// An event as a syslog message: RFC 5424 for the network, and the format of syslog(3) for the socket of this
// host. Pure.
#pragma once
#include <string>
#include <string_view>

#include "proxy/log/line.h"

namespace longhaul::log {

// Facility daemon (3).
int syslog_priority(Level level);

// The length that receivers should accept (RFC 5424, section 6.1); longer messages are cut between two
// characters.
inline constexpr std::size_t kMostSyslogBytes = 2048;

struct SyslogSource {
  std::string host;  // of this machine; empty if unknown
  int process = 0;
};

// <30>1 2026-11-20T23:44:31.123Z host longhaul 77 link_up - link_up peer=datacenter
std::string rfc5424_message(const SyslogSource& source, WallTime now, Level level, std::string_view event,
                            std::string_view text);
// <30>Nov 20 23:44:31 longhaul[77]: link_up peer=datacenter, in local time, as local syslog daemons expect.
std::string local_syslog_message(const SyslogSource& source, WallTime now, Level level, std::string_view text);

}  // namespace longhaul::log
