// SPDX-License-Identifier: Apache-2.0
// Turns snapshots into Prometheus metric families; prometheus-cpp serializes them.
#include "proxy/control/metrics.h"

#include <algorithm>
#include <utility>

#include "proxy/control/metrics_parts.h"
#include "proxy/control/verdict.h"
#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

void add_flows(Families& families, const Status& status, const flows::FlowTable& flows) {
  const auto& totals = flows.totals();
  auto live = families.gauge("flows_live", "Live flows, by reason code.");
  auto given = families.counter("flows_reason_total", "Number of times a flow was given this reason code.");
  for (const flows::Reason reason : flows::all_reasons()) {
    live.sample({{"reason", reason->code}}, flows::count(totals.live_by_reason, reason));
    given.sample({{"reason", reason->code}}, flows::count(totals.by_reason, reason));
  }
  families.gauge("flows_limit", "Maximum number of live flows ([limits] flows).")
      .sample({}, status.flows_limit);
  families.counter("flows_started_total", "Flows started.").sample({}, totals.started);
  {
    auto family = families.counter("flows_reset_total", "Flows reset, by the party that reset them.");
    for (std::size_t i = 0; i < totals.reset_by.size(); ++i)
      family.sample({{"by", std::string(flows::kResetTexts[i].code)}}, totals.reset_by[i]);
  }
  families.counter("flows_ended_total", "Flows ended, by how they ended.")
      .sample({{"end", "closed"}}, totals.ended - totals.reset)
      .sample({{"end", "reset"}}, totals.reset);
  const auto bytes = flows.bytes_so_far();
  families
      .counter(
          "flow_bytes_total",
          "Bytes of flows: application bytes on the LAN side, link frames before encryption on the WAN side.")
      .sample({{"side", "lan"}, {"direction", "in"}}, bytes.lan_in)
      .sample({{"side", "lan"}, {"direction", "out"}}, bytes.lan_out)
      .sample({{"side", "wan"}, {"direction", "in"}}, bytes.wan_in)
      .sample({{"side", "wan"}, {"direction", "out"}}, bytes.wan_out);
}

void add_verdict(Families& families, const Status& status, const config::Features& features) {
  const auto found = problems(status, features);
  const auto serious = static_cast<std::uint64_t>(std::ranges::count_if(found, &Problem::is_serious));
  families.gauge("problems", "Problems that longhaul status reports in its first lines.")
      .sample({{"severity", "serious"}}, serious)
      .sample({{"severity", "minor"}}, found.size() - serious);
  auto in_force =
      families.gauge("feature", "Always 1; the labels are a feature in force for new flows, and its value.");
  for (const auto& [name, value] : config::to_text(features))
    in_force.sample({{"feature", name}, {"value", value}}, 1.0);
}

void add_process(Families& families, const Status& status) {
  families.gauge("process_system_call_filter", "1 while the filter of system calls is in force.")
      .sample({}, status.confinement.filters_system_calls ? 1.0 : 0.0);
  families.gauge("process_landlock_version", "Version of Landlock that confines the process; 0: none.")
      .sample({}, static_cast<double>(status.confinement.landlock_version));
}

void add_ports(Families& families, const flows::FlowTable& flows) {
  auto bytes = families.counter("port_bytes_total",
                                "Bytes of flows by destination port, as in longhaul_flow_bytes_total.");
  auto blocks = families.counter(
      "port_block_bytes_total",
      "Bytes of flows by destination port: before reduction (plain), after deduplication (deduped) and after "
      "compression (encoded).");
  auto started = families.counter("port_flows_total", "Flows started, by destination port.");
  auto block_counts = families.counter("port_blocks_total", "Blocks of flows, by destination port.");
  for (const auto& [number, totals] : flows.by_port_so_far()) {
    const std::string port = number == 0 ? "other" : std::to_string(number);
    started.sample({{"port", port}}, totals.started);
    block_counts.sample({{"port", port}, {"direction", "out"}}, totals.blocks.out.blocks)
        .sample({{"port", port}, {"direction", "in"}}, totals.blocks.in.blocks);
    bytes.sample({{"port", port}, {"side", "lan"}, {"direction", "in"}}, totals.bytes.lan_in)
        .sample({{"port", port}, {"side", "lan"}, {"direction", "out"}}, totals.bytes.lan_out)
        .sample({{"port", port}, {"side", "wan"}, {"direction", "in"}}, totals.bytes.wan_in)
        .sample({{"port", port}, {"side", "wan"}, {"direction", "out"}}, totals.bytes.wan_out);
    for (const auto& [direction, counted] :
         {std::pair("out", totals.blocks.out), std::pair("in", totals.blocks.in)})
      blocks.sample({{"port", port}, {"direction", direction}, {"stage", "plain"}}, counted.plain)
          .sample({{"port", port}, {"direction", direction}, {"stage", "deduped"}}, counted.deduped)
          .sample({{"port", port}, {"direction", direction}, {"stage", "encoded"}}, counted.encoded);
  }
}

void add_modules(Families& families, const flows::FlowTable& flows) {
  const auto totals = flows.by_module_so_far();
  auto live = families.gauge("module_flows_live", "Live flows with an application module.");
  auto started = families.counter("module_flows_total", "Flows with an application module.");
  for (const auto& [of, module] : totals) {
    live.sample({{"peer", of.first}, {"module", of.second}}, module.live);
    started.sample({{"peer", of.first}, {"module", of.second}}, module.flows);
  }
  for (const auto& counter : modules::kCounterNames) {
    auto family = families.counter("module_" + std::string(counter.name) + "_total",
                                   std::string(counter.help) + ", counted at this site.");
    for (const auto& [of, module] : totals)
      family.sample({{"peer", of.first}, {"module", of.second}}, module.counters.*counter.value);
  }
}

void add_disk(Families& families, const Status& status) {
  if (!status.disk) return;
  const auto& disk = *status.disk;
  families.gauge("disk_dictionary_ready", "1 when the directory of the disk dictionary has been read.")
      .sample({}, disk.ready ? 1.0 : 0.0);
  families.gauge("disk_dictionary_segments", "Segments in the disk dictionary.").sample({}, disk.segments);
  families
      .gauge("disk_dictionary_bytes",
             "Bytes of the disk dictionary: stored, limit, queued for writing, index in memory.")
      .sample({{"kind", "stored"}}, disk.disk_bytes)
      .sample({{"kind", "limit"}}, disk.cap_bytes)
      .sample({{"kind", "queued"}}, disk.queued_bytes)
      .sample({{"kind", "index"}}, disk.memory_bytes);
  families.counter("disk_dictionary_segments_total", "Segments of the disk dictionary, by event.")
      .sample({{"event", "put"}}, disk.put)
      .sample({{"event", "refused"}}, disk.refused)
      .sample({{"event", "failed"}}, disk.failed)
      .sample({{"event", "wrong_digest"}}, disk.wrong_digest)
      .sample({{"event", "evicted"}}, disk.made_room)
      .sample({{"event", "damaged"}}, disk.damaged)
      .sample({{"event", "lost"}}, disk.lost);
  families
      .counter("disk_dictionary_moved_bytes_total",
               "Bytes written to, refused by and read from the disk dictionary.")
      .sample({{"event", "put"}}, disk.put_bytes)
      .sample({{"event", "refused"}}, disk.refused_bytes)
      .sample({{"event", "loaded"}}, disk.load_bytes);
  families.counter("disk_dictionary_loads_total", "Reads of segments from disk, by outcome.")
      .sample({{"outcome", "asked"}}, disk.loads)
      .sample({{"outcome", "failed"}}, disk.loads_failed);
  families.counter("disk_dictionary_lookups_total", "Fingerprint lookups in the disk dictionary, and hits.")
      .sample({{"kind", "asked"}}, disk.lookups)
      .sample({{"kind", "hit"}}, disk.hits);
}

void add_objects(Families& families, const Status& status) {
  if (!status.objects) return;
  const auto& objects = *status.objects;
  families.gauge("disk_objects", "Stored responses on disk.").sample({}, objects.objects);
  families.gauge("disk_objects_ready", "1 when the directory of stored responses has been read.")
      .sample({}, objects.ready ? 1.0 : 0.0);
  families
      .gauge("disk_objects_bytes",
             "Bytes of stored responses: on disk, limit, queued for writing, in memory for the disk.")
      .sample({{"kind", "stored"}}, objects.disk_bytes)
      .sample({{"kind", "limit"}}, objects.cap_bytes)
      .sample({{"kind", "queued"}}, objects.queued_bytes)
      .sample({{"kind", "memory"}}, objects.memory_bytes);
  families.counter("disk_objects_total", "Stored responses on disk, by event.")
      .sample({{"event", "put"}}, objects.put)
      .sample({{"event", "refused"}}, objects.refused)
      .sample({{"event", "failed"}}, objects.failed)
      .sample({{"event", "evicted"}}, objects.evicted)
      .sample({{"event", "damaged"}}, objects.damaged);
  families
      .counter("disk_objects_moved_bytes_total", "Bytes of stored responses written to and read from disk.")
      .sample({{"event", "put"}}, objects.put_bytes)
      .sample({{"event", "read"}}, objects.read_bytes);
  families.counter("disk_objects_reads_total", "Reads of stored responses from disk, by outcome.")
      .sample({{"outcome", "asked"}}, objects.reads)
      .sample({{"outcome", "failed"}}, objects.reads_failed)
      .sample({{"outcome", "late"}}, objects.reads_late)
      .sample({{"outcome", "skipped"}}, objects.reads_skipped);
  families
      .gauge("disk_objects_answers",
             "0 while stored responses are not read from disk because the disk responds too slowly.")
      .sample({}, objects.answers ? 1.0 : 0.0);
}

void add_exports(Families& families, const Status& status) {
  if (const auto& flows = status.flow_export) {
    families.counter("ipfix_messages_total", "IPFIX messages sent.").sample({}, flows->messages);
    families.counter("ipfix_records_total", "Flow records, by outcome.")
        .sample({{"outcome", "sent"}}, flows->records)
        .sample({{"outcome", "dropped"}}, flows->dropped_records);
    families
        .counter("ipfix_failures_total", "Look-ups of the IPFIX collector and messages to it that failed.")
        .sample({}, flows->failures);
  }
  if (const auto& lines = status.syslog)
    families.counter("syslog_lines_total", "Log lines for syslog, by outcome.")
        .sample({{"outcome", "sent"}}, lines->sent)
        .sample({{"outcome", "lost"}}, lines->lost);
  if (const auto& metrics = status.metric_export) {
    families
        .counter("otlp_requests_total", "Requests with metrics to the OpenTelemetry collector, by outcome.")
        .sample({{"outcome", "taken"}}, metrics->sent)
        .sample({{"outcome", "failed"}}, metrics->failed);
    families.counter("otlp_rejected_points_total", "Data points that the OpenTelemetry collector rejected.")
        .sample({}, metrics->rejected_points);
  }
}

void add_refusals(Families& families, const Status& status) {
  auto refused = families.counter("strangers_refused_total",
                                  "Connections to the link's port that were not authenticated, by reason.");
  for (const auto& row : link::kRefusalTable)
    refused.sample({{"reason", row.code}}, status.strangers_refused[static_cast<std::size_t>(row.refusal)]);
}

std::string of_module(const modules::Listed& module, std::string_view name) {
  return std::string(module.descriptor.name) + '_' + std::string(name);
}

void add_losses(Families& families, const modules::Listed& module) {
  if (!module.instance->losses()) return;
  const auto counts = module.instance->losses()->counts();
  auto lost = families.counter(of_module(module, "promises_lost_total"),
                               "Files with acknowledged writes that were lost, by cause.");
  for (const auto& [cause, files] : counts.lost) lost.sample({{"cause", cause}}, files);
  auto suspected = families.counter(of_module(module, "promises_suspected_total"),
                                    "Files with acknowledged writes that may be lost, by cause.");
  for (const auto& [cause, files] : counts.suspected) suspected.sample({{"cause", cause}}, files);
  auto reported = families.counter(of_module(module, "promises_reported_total"),
                                   "Losses of acknowledged writes reported to a client, by the kind of report.");
  for (const auto& [how, losses] : counts.reported) reported.sample({{"how", how}}, losses);
  families
      .counter(of_module(module, "promises_forgotten_total"),
               "Losses of acknowledged writes dropped for lack of room and never reported.")
      .sample({}, counts.forgotten);
  families
      .gauge(of_module(module, "lost_files"),
             "Files with lost writes whose client has not been notified yet.")
      .sample({}, counts.waiting);
}

}  // namespace

Families metric_families(const Status& status, const flows::FlowTable& flows,
                         const config::Features& features, const ApiCounters& api) {
  Families families;
  families.gauge("info", "Always 1; the labels identify the daemon.")
      .sample({{"site", status.site}, {"version", status.version}}, 1.0);
  families.gauge("uptime_seconds", "Time since the daemon started.")
      .sample({}, std::chrono::duration<double>(status.uptime).count());
  add_verdict(families, status, features);
  add_process(families, status);
  add_flows(families, status, flows);
  add_links(families, status);
  add_udp(families, status);
  add_paths(families, status);
  add_reduction(families, status);
  add_disk(families, status);
  add_objects(families, status);
  add_ports(families, flows);
  add_modules(families, flows);
  families.gauge("connections_ahead", "Open connections to servers that were made before a client connected.")
      .sample({}, status.connections_ahead);
  const auto& ahead = status.connections_ahead_so_far;
  families
      .counter(
          "connections_ahead_total",
          "Connections to servers that were made before a client connected: made; of these used by a flow, "
          "closed unused after their time, or closed by the server (lost); of those used, replaced.")
      .sample({{"event", "made"}}, ahead.made)
      .sample({{"event", "used"}}, ahead.used)
      .sample({{"event", "replaced"}}, ahead.replaced)
      .sample({{"event", "unused"}}, ahead.unused)
      .sample({{"event", "lost"}}, ahead.lost);
  families.gauge("handshakes", "TLS handshakes in progress.").sample({}, status.handshakes);
  families.gauge("handshakes_limit", "Maximum number of TLS handshakes in progress ([limits] handshakes).")
      .sample({}, status.handshakes_limit);
  add_refusals(families, status);
  for (const modules::Listed& module : status.modules) add_losses(families, module);
  auto part_bytes = families.gauge("memory_part_bytes", "Memory used by each part.");
  auto part_limit = families.gauge("memory_part_limit_bytes", "Memory limit of each part.");
  for (const MemoryPart& part : status.memory_parts) {
    part_bytes.sample({{"part", std::string(part.name)}}, part.bytes);
    part_limit.sample({{"part", std::string(part.name)}}, part.limit_bytes);
  }
  families.gauge("memory_bytes", "Memory used by all parts together.").sample({}, status.memory_bytes);
  families.gauge("memory_limit_bytes", "Limit of all memory ([limits] memory), including the reserve.")
      .sample({}, status.memory_limit_bytes);
  families.gauge("module_memory_bytes", "Memory that application modules use for flows, handshakes and connections ahead.")
      .sample({}, status.module_bytes);
  families
      .gauge("memory_short",
             "1 while the memory limit leaves no room for new flows (flows) or for application modules "
             "(modules).")
      .sample({{"of", "flows"}}, status.memory_short ? 1.0 : 0.0)
      .sample({{"of", "modules"}}, status.module_memory_short ? 1.0 : 0.0);
  families.gauge("ahead_bytes", "Memory used for data read ahead of client requests.")
      .sample({}, status.ahead_bytes);
  families
      .gauge("dictionary_memory_bytes",
             "Memory used by the dictionaries of all links and by the disk dictionary.")
      .sample({}, status.dictionary_bytes);
  families.gauge("dictionary_memory_limit_bytes", "Memory limit of the dictionaries.")
      .sample({}, status.dictionary_limit_bytes);
  families.gauge("intercept_up", "1 while the packet rules of transparent mode are installed.")
      .sample({}, status.intercept == InterceptState::up ? 1.0 : 0.0);
  auto bypassed = families.counter("bypassed_connections_total",
                                   "New connections that bypassed the proxy because of a limit.");
  for (const auto& [limit, connections] : status.bypassed) bypassed.sample({{"limit", limit}}, connections);
  families.gauge("fail_closed", "1 for the current state of the packet rules of fail = closed.")
      .sample({{"state", std::string(to_text(status.fail_closed))}}, 1.0);
  add_exports(families, status);
  families.gauge("control_connections", "Open connections to the control API.").sample({}, api.connections);
  families.counter("control_connections_total", "Connections to the control API, by outcome.")
      .sample({{"outcome", "accepted"}}, api.accepted)
      .sample({{"outcome", "turned_away"}}, api.turned_away);
  families.counter("control_requests_total", "Requests to the control API, by outcome.")
      .sample({{"outcome", "answered"}}, api.requests - api.refused)
      .sample({{"outcome", "refused"}}, api.refused);
  return families;
}

}  // namespace longhaul::control
