// SPDX-License-Identifier: Apache-2.0
// Sends flow records and metrics to monitoring systems, as configured in [export].
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "proxy/config/config.h"
#include "proxy/control/controlled.h"
#include "proxy/export/flow_exporter.h"
#include "proxy/export/metric_exporter.h"

namespace longhaul {

class Exports {
 public:
  // All references outlive this object.
  Exports(boost::asio::io_context& io, const config::Config& config, const flows::FlowTable& table,
          net::NameResolver& resolver)
      : io_(io), config_(config), table_(table), resolver_(resolver) {}

  // `collector`: for metrics over HTTPS. `collect` is called on the event loop until stop().
  void begin(identity::WebContext collector, std::function<control::Families()> collect);
  // Call before its record is destroyed.
  void flow_ended(const flows::FlowRecord& record);
  // Reports the flows that are still live.
  void stop();
  void report_to(control::Status& status) const;

 private:
  boost::asio::io_context& io_;
  const config::Config& config_;
  const flows::FlowTable& table_;
  net::NameResolver& resolver_;
  std::unique_ptr<exporting::FlowExporter> flows_;
  std::unique_ptr<exporting::MetricExporter> metrics_;
};

}  // namespace longhaul
