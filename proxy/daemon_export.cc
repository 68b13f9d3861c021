// SPDX-License-Identifier: Apache-2.0
// Data that the daemon sends to monitoring systems.
#include "proxy/control/metrics.h"
#include "proxy/daemon_parts.h"
#include "proxy/version.h"

namespace longhaul {

void Daemon::begin_exports() {
  const config::Export& exports = config_.exports;
  if (exports.ipfix) {
    flow_exporter_ = std::make_unique<exporting::FlowExporter>(
        io_,
        exporting::FlowExporter::Settings{.to = *exports.ipfix,
                                          .enterprise = exports.ipfix_enterprise,
                                          .active_timeout = exports.ipfix_active_timeout,
                                          .domain = exporting::observation_domain(config_.site)},
        table_, shared_.resolver);
    flow_exporter_->begin();
  }
  if (exports.otlp) {
    metric_exporter_ = std::make_unique<exporting::MetricExporter>(
        io_, exporting::MetricExporter::Settings{.to = *exports.otlp, .interval = exports.otlp_interval, .tls = web_.collector},
        exporting::OtlpSource{config_.site, std::string(version()), std::chrono::system_clock::now()},
        [this] { return control::metric_families(status(), table_, features_, control_->counters()); }, shared_.resolver);
    metric_exporter_->begin();
  }
}

void Daemon::stop_exports() {
  if (metric_exporter_) metric_exporter_->stop();
  table_.on_removed = nullptr;
  if (flow_exporter_) flow_exporter_->stop();
}

}  // namespace longhaul
