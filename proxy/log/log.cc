// SPDX-License-Identifier: Apache-2.0
// The one place that knows spdlog: a queue, a thread, a sink. line.cc formats the line.
#include "proxy/log/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <cassert>
#include <utility>

#include "proxy/log/line.h"

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

struct Writer {
  spdlog::async_logger* logger = nullptr;
  bool json = false;
};
Writer writer;  // set by the one Session before other threads start, cleared after they ended

}  // namespace

std::atomic<Level> detail::level{Level::off};

void detail::write(Level level, std::string_view event, Fields fields) {
  const auto now = std::chrono::system_clock::now();
  const std::string line =
      writer.json ? json_line(now, level, event, fields) : key_value_line(now, level, event, fields);
  // The level was checked above; spdlog only transports the bytes.
  writer.logger->log(spdlog::level::critical, std::string_view(line));
}

struct Session::State {
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

Session::Session(const config::Log& settings)
    : Session(settings, std::make_shared<spdlog::sinks::stderr_sink_mt>()) {}

Session::Session(const config::Log& settings, spdlog::sink_ptr sink) : state_(std::make_unique<State>()) {
  assert(writer.logger == nullptr && "one log session at a time");
  sink->set_pattern("%v");
  state_->pool = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1u);
  state_->logger = std::make_shared<spdlog::async_logger>("longhaul", std::move(sink), state_->pool,
                                                          spdlog::async_overflow_policy::overrun_oldest);
  state_->logger->flush_on(spdlog::level::trace);
  writer = {state_->logger.get(), settings.json};
  detail::level.store(parse(settings.level));
}

Session::~Session() {
  if (const auto lost = state_->pool->overrun_counter(); lost > 0) warn("log_lines_lost", {{"lines", lost}});
  detail::level.store(Level::off);
  state_->pool.reset();  // joins its thread, which writes what is queued
  writer = {};
}

}  // namespace longhaul::log
