// SPDX-License-Identifier: Apache-2.0
#include "proxy/exports.h"

#include <utility>

#include "proxy/version.h"

namespace longhaul {

void Exports::begin(identity::WebContext collector, std::function<control::Families()> collect) {
  const config::Export& exports = config_.exports;
  if (exports.ipfix) {
    flows_ = std::make_unique<exporting::FlowExporter>(
        io_,
        exporting::FlowExporter::Settings{.to = *exports.ipfix,
                                          .enterprise = exports.ipfix_enterprise,
                                          .active_timeout = exports.ipfix_active_timeout,
                                          .domain = exporting::observation_domain(config_.site)},
        table_, resolver_);
    flows_->begin();
  }
  if (exports.otlp) {
    metrics_ = std::make_unique<exporting::MetricExporter>(
        io_,
        exporting::MetricExporter::Settings{
            .to = *exports.otlp, .interval = exports.otlp_interval, .tls = std::move(collector)},
        exporting::OtlpSource{config_.site, std::string(version()), std::chrono::system_clock::now()},
        std::move(collect), resolver_);
    metrics_->begin();
  }
}

void Exports::flow_ended(const flows::FlowRecord& record) {
  if (flows_) flows_->flow_ended(record);
}

void Exports::stop() {
  if (metrics_) metrics_->stop();
  if (flows_) flows_->stop();
}

void Exports::report_to(control::Status& status) const {
  if (flows_) status.flow_export = flows_->counters();
  if (metrics_) status.metric_export = metrics_->counters();
}

}  // namespace longhaul
