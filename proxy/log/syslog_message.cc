// SPDX-License-Identifier: Apache-2.0
#include "proxy/log/syslog_message.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace longhaul::log {
namespace {

constexpr int kDaemonFacility = 3;
constexpr std::size_t kMostHost = 255, kMostMessageId = 32;  // section 6

// Section 6: PRINTUSASCII, without spaces. "-" stands for an unknown value.
std::string header_value(std::string_view text, std::size_t most) {
  std::string value;
  for (const char c : text.substr(0, most)) value += c > ' ' && c < 0x7f ? c : '_';
  return value.empty() ? "-" : value;
}

// Does not cut within a character: bytes 10xxxxxx are continuations.
std::string cut(std::string message) {
  if (message.size() <= kMostSyslogBytes) return message;
  std::size_t end = kMostSyslogBytes;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80) --end;
  message.resize(end);
  return message;
}

}  // namespace

int syslog_priority(Level level) {
  constexpr int kError = 3, kWarning = 4, kInformational = 6, kDebug = 7;
  const int severity = level == Level::error  ? kError
                       : level == Level::warn ? kWarning
                       : level == Level::info ? kInformational
                                              : kDebug;
  return kDaemonFacility * 8 + severity;
}

std::string rfc5424_message(const SyslogSource& source, WallTime now, Level level, std::string_view event,
                            std::string_view text) {
  return cut(fmt::format("<{}>1 {} {} longhaul {} {} - {}", syslog_priority(level), time_text(now),
                         header_value(source.host, kMostHost), source.process, header_value(event, kMostMessageId), text));
}

std::string local_syslog_message(const SyslogSource& source, WallTime now, Level level, std::string_view text) {
  const auto local = fmt::localtime(std::chrono::system_clock::to_time_t(now));
  return cut(fmt::format("<{}>{:%b %e %H:%M:%S} longhaul[{}]: {}", syslog_priority(level), local, source.process, text));
}

}  // namespace longhaul::log
