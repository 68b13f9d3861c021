// SPDX-License-Identifier: Apache-2.0
#include "proxy/status_report.h"

#include <utility>

#include "proxy/log/log.h"
#include "proxy/version.h"

namespace longhaul {

std::vector<control::MemoryPart> memory_parts(const MemoryPlan& plan, const control::Status& status,
                                              std::uint64_t credit_bytes, std::uint64_t retained_bytes) {
  return {{"credit", credit_bytes, plan.credit_bytes},
          {"retained", retained_bytes, plan.retained_bytes},
          {"modules", status.module_bytes, plan.module_bytes},
          {"ahead", status.ahead_bytes, plan.ahead_bytes},
          {"dictionaries", status.dictionary_bytes, status.dictionary_limit_bytes}};
}

control::Status StatusReport::now() const {
  control::Status status{
      .site = config_.site, .version = std::string(version()), .confinement = confinement_};
  status.uptime =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_);
  if (config_.control.tls_listen) status.control_tls = config::to_text(*config_.control.tls_listen);
  status.flows_limit = config_.limits.flows;
  status.handshakes_limit = config_.limits.handshakes;
  parts_.links.report_to(status);
  parts_.modules.report_to(status);
  parts_.transparent.report_to(status);
  parts_.exports.report_to(status);
  status.memory_limit_bytes = plan_.cap_bytes;
  status.dictionary_limit_bytes = plan_.history_bytes + plan_.store_bytes;
  status.memory_parts =
      memory_parts(plan_, status, parts_.links.credit_bytes(), parts_.links.retained_bytes());
  for (const control::MemoryPart& part : status.memory_parts) status.memory_bytes += part.bytes;
  status.rates = rates_;
  status.connections_ahead = parts_.flows.spares().size();
  status.connections_ahead_so_far = parts_.flows.spares().counters();
  if (config_.log.syslog) status.syslog = log::syslog_counters();
  status.logs_keys = config_.link.key_log.has_value();
  return status;
}

void StatusReport::measure(const flows::FlowBytes& bytes) {
  control::RecentRates::Sample sample{.at = std::chrono::steady_clock::now(), .flows = bytes, .links = {}};
  for (const auto& link : parts_.links.all()) {
    const link::LinkStatus now = link->status();
    sample.links[now.peer] = {now.bytes_sent, now.bytes_received};
  }
  rates_.add(std::move(sample));
}

}  // namespace longhaul
