// SPDX-License-Identifier: Apache-2.0
// Sends the metrics to an OpenTelemetry collector at regular intervals, over HTTP or HTTPS. Failed requests
// are not repeated: the next request has newer values of the same counters.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "codecs/result.h"
#include "proxy/config/config.h"
#include "proxy/control/metric_families.h"
#include "proxy/export/counters.h"
#include "proxy/export/otlp.h"
#include "proxy/identity/web_tls.h"
#include "proxy/log/line_limit.h"
#include "proxy/net/name_resolver.h"

namespace longhaul::exporting {

class MetricExporter {
 public:
  struct Settings {
    config::HttpBase to;
    std::chrono::seconds interval{60};
    identity::WebContext tls;  // set if `to` is https
  };
  // `collect` is called on the event loop from begin() to stop(). All references outlive this object.
  MetricExporter(boost::asio::io_context& io, Settings settings, OtlpSource source,
                 std::function<control::Families()> collect, net::NameResolver& resolver);
  MetricExporter(const MetricExporter&) = delete;
  MetricExporter& operator=(const MetricExporter&) = delete;

  void begin();
  void stop();
  const MetricExportCounters& counters() const { return counters_; }

 private:
  boost::asio::awaitable<void> run();
  // Returns an empty text if it was accepted, otherwise the reason.
  boost::asio::awaitable<std::string> send(std::string body);
  std::string judge(unsigned status, std::string_view body);

  boost::asio::io_context& io_;
  const Settings settings_;
  const OtlpSource source_;
  const std::function<control::Families()> collect_;
  net::NameResolver& resolver_;
  boost::asio::steady_timer timer_;
  MetricExportCounters counters_;
  log::LineLimit complaints_{1};
};

}  // namespace longhaul::exporting
