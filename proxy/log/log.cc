// SPDX-License-Identifier: Apache-2.0
// Uses spdlog: a queue, a thread, a sink. line.cc and syslog_message.cc format the lines.
#include "proxy/log/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <optional>
#include <string>
#include <utility>

#include "proxy/log/line.h"
#include "proxy/log/syslog_message.h"
#include "proxy/log/syslog_sink.h"

namespace longhaul::log {
namespace {

constexpr std::size_t kQueuedLines = 8192;

constexpr std::array<std::pair<std::string_view, Level>, 5> kLevels{{{"error", Level::error},
                                                                     {"warn", Level::warn},
                                                                     {"info", Level::info},
                                                                     {"debug", Level::debug},
                                                                     {"trace", Level::trace}}};

Level parse(std::string_view text) {
  for (const auto& [name, level] : kLevels)
    if (name == text) return level;
  return Level::info;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

struct Writer {
  spdlog::async_logger* logger = nullptr;
  bool json = false;
  spdlog::async_logger* syslog = nullptr;
  spdlog::details::thread_pool* syslog_pool = nullptr;
  bool is_local = false;  // the socket of this host, which has another format
  SyslogSource source;
};
Writer writer;  // set by the only Session before other threads start, cleared after they have ended

}  // namespace

std::atomic<Level> detail::level{Level::off};
std::atomic<std::uint64_t> detail::syslog_sent, detail::syslog_lost;
std::atomic<bool> detail::syslog_fails;

SyslogCounters syslog_counters() {
  const auto overrun = writer.syslog_pool == nullptr ? 0 : writer.syslog_pool->overrun_counter();
  return {detail::syslog_sent.load(), detail::syslog_lost.load() + overrun, detail::syslog_fails.load()};
}

void detail::write(Level level, std::string_view event, Fields fields) {
  const auto now = std::chrono::system_clock::now();
  const std::string line =
      writer.json ? json_line(now, level, event, fields) : key_value_line(now, level, event, fields);
  // The level was checked above; spdlog only transports the bytes.
  writer.logger->log(spdlog::level::critical, std::string_view(line));
  if (writer.syslog == nullptr) return;
  const std::string text = writer.json ? line : event_text(event, fields);
  writer.syslog->log(spdlog::level::critical,
                     std::string_view(writer.is_local ? local_syslog_message(writer.source, now, level, text)
                                                      : rfc5424_message(writer.source, now, level, event, text)));
}

// A queue, a thread that empties it, and the destination.
struct Output {
  explicit Output(spdlog::sink_ptr sink)
      : pool(std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1u)),
        logger(std::make_shared<spdlog::async_logger>("longhaul", std::move(sink), pool,
                                                      spdlog::async_overflow_policy::overrun_oldest)) {
    logger->sinks().front()->set_pattern("%v");
    logger->flush_on(spdlog::level::trace);
  }
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

struct Session::State {
  explicit State(spdlog::sink_ptr sink) : output(std::move(sink)) {}
  Output output;
  std::optional<Output> syslog;
};

Session::Session(const config::Log& settings)
    : Session(settings, std::make_shared<spdlog::sinks::stderr_sink_mt>()) {}

Session::Session(const config::Log& settings, spdlog::sink_ptr sink) : state_(std::make_unique<State>(std::move(sink))) {
  assert(writer.logger == nullptr && "one log session at a time");
  writer = {.logger = state_->output.logger.get(), .json = settings.json};
  if (settings.syslog) {
    state_->syslog.emplace(std::make_shared<SyslogSink>(*settings.syslog));
    writer.syslog = state_->syslog->logger.get();
    writer.syslog_pool = state_->syslog->pool.get();
    writer.is_local = settings.syslog->is_local();
    writer.source = {host_name(), ::getpid()};
  }
  detail::level.store(parse(settings.level));
}

Session::~Session() {
  if (const auto lost = state_->output.pool->overrun_counter(); lost > 0) warn("log_lines_lost", {{"lines", lost}});
  detail::level.store(Level::off);
  writer.syslog_pool = nullptr;
  if (state_->syslog) state_->syslog->pool.reset();  // its thread ends first, because it may log itself
  state_->output.pool.reset();                       // joins its thread, which writes the queued lines
  writer = {};
}

}  // namespace longhaul::log
