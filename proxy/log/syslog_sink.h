// SPDX-License-Identifier: Apache-2.0
// Sends finished syslog messages as datagrams, from the log's own thread: if a name resolves slowly, or the
// syslog daemon is unavailable, lines are lost, but the caller never waits.
#pragma once
#include <spdlog/sinks/base_sink.h>

#include <chrono>
#include <mutex>

#include "proxy/config/config.h"
#include "proxy/log/log.h"

namespace longhaul::log {

class SyslogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit SyslogSink(config::Syslog to);
  ~SyslogSink() override;

 private:
  using Clock = std::chrono::steady_clock;

  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  bool connect();
  bool connect_local();
  bool connect_network();
  void disconnect();
  void lose(int error);

  const config::Syslog to_;
  int socket_ = -1;
  Clock::time_point next_try_{};
  int last_error_ = 0;
  Clock::time_point next_complaint_{};
};

}  // namespace longhaul::log
