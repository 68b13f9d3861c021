// SPDX-License-Identifier: Apache-2.0
// Formats an event as text. Pure; log.cc provides the time and writes the line.
#pragma once
#include <chrono>
#include <string>

#include "proxy/log/log.h"

namespace longhaul::log {

using WallTime = std::chrono::system_clock::time_point;

std::string time_text(WallTime now);  // 2026-11-20T23:44:31.123Z
// link_up peer=datacenter rtt_ms=101.2
std::string event_text(std::string_view event, Fields fields);

// 2026-11-20T23:44:31.123Z info link_up peer=datacenter rtt_ms=101.2 reason="no route to host"
// Text with spaces or quotes, and empty text, is quoted; control bytes and broken UTF-8 become \n, \t or
// \xNN, so that text from a network can neither start a line nor control a terminal.
std::string key_value_line(WallTime now, Level level, std::string_view event, Fields fields);

// {"time":"…","level":"info","event":"link_up","peer":"datacenter","rtt_ms":101.2}
// Broken UTF-8 becomes U+FFFD; a number that JSON does not support (infinity) becomes null.
std::string json_line(WallTime now, Level level, std::string_view event, Fields fields);

}  // namespace longhaul::log
