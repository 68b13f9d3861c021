// SPDX-License-Identifier: Apache-2.0
// One event per line: a short name and fields, as text (key=value) or JSON. Levels: error = act, warn =
// degraded, info = lifecycle, debug = flow, trace = packet.
#pragma once
#include <spdlog/common.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "proxy/config/config.h"

namespace longhaul::log {

enum class Level : std::uint8_t { off, error, warn, info, debug, trace };

// Borrows text until the logging call returns. Units belong in the key: {"rtt_ms", 101.2}.
class Value {
 public:
  Value(std::string_view text) : value_(text) {}                      // NOLINT: implicit on purpose,
  Value(const std::string& text) : value_(std::string_view(text)) {}  // NOLINT: so that a call reads
  Value(const char* text) : value_(std::string_view(text)) {}         // NOLINT: like the line it writes
  Value(bool on) : value_(on) {}                                      // NOLINT
  template <std::signed_integral T>
  Value(T number) : value_(static_cast<std::int64_t>(number)) {}  // NOLINT
  template <std::unsigned_integral T>
  Value(T number) : value_(static_cast<std::uint64_t>(number)) {}  // NOLINT
  template <std::floating_point T>
  Value(T number) : value_(static_cast<double>(number)) {}  // NOLINT

  const auto& get() const { return value_; }

 private:
  std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value_;
};

struct Field {
  std::string_view key;
  Value value;
};
using Fields = std::initializer_list<Field>;

// Logging is on during its lifetime. A separate thread writes the lines, so that a blocked stderr loses the
// oldest lines but never blocks the loop; syslog has a thread of its own. The destructor writes the remaining
// lines.
class Session {
 public:
  explicit Session(const config::Log& settings);  // to stderr
  Session(const config::Log& settings, spdlog::sink_ptr sink);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Counters of [log] syslog since the start. Lost: the syslog daemon was unavailable, or too slow for the
// queue.
struct SyslogCounters {
  std::uint64_t sent = 0, lost = 0;
  bool fails = false;  // the last line was lost
};
SyslogCounters syslog_counters();

namespace detail {
extern std::atomic<Level> level;
extern std::atomic<std::uint64_t> syslog_sent, syslog_lost;
extern std::atomic<bool> syslog_fails;  // the last line was lost
void write(Level level, std::string_view event, Fields fields);
}  // namespace detail

// For fields that are expensive to compute.
inline bool enabled(Level level) { return level <= detail::level.load(std::memory_order_relaxed); }

// Nothing is written without a Session. `event` is one word, such as "link_up"; a flow's events carry
// {"flow", id}.
inline void write(Level level, std::string_view event, Fields fields = {}) {
  if (enabled(level)) detail::write(level, event, fields);
}
inline void error(std::string_view event, Fields fields = {}) { write(Level::error, event, fields); }
inline void warn(std::string_view event, Fields fields = {}) { write(Level::warn, event, fields); }
inline void info(std::string_view event, Fields fields = {}) { write(Level::info, event, fields); }
inline void debug(std::string_view event, Fields fields = {}) { write(Level::debug, event, fields); }
inline void trace(std::string_view event, Fields fields = {}) { write(Level::trace, event, fields); }

}  // namespace longhaul::log
