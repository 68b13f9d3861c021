// SPDX-License-Identifier: Apache-2.0
// Tests that the metrics leave nothing out: every number of /v1/status, each made different here, is a
// sample.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "proxy/control/http_client.h"

namespace longhaul::control {
namespace {

namespace json = boost::json;

std::set<double> samples(const std::string& text) {
  std::set<double> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) found.insert(std::stod(line.substr(line.rfind(' ') + 1)));
  return found;
}

// Calls `look` with the path and value of each number.
template <class Look>
void walk(const json::value& value, const std::string& path, Look& look) {
  if (value.is_object())
    for (const auto& [name, each] : value.get_object()) walk(each, path + '.' + std::string(name), look);
  else if (value.is_array())
    for (const auto& each : value.get_array()) walk(each, path + "[]", look);
  else if (value.is_number())
    look(path, value.to_number<double>());
}

// 1009 is prime and so are the steps: neither two of them nor one and a thousandth of another are equal.
struct Different {
  std::uint64_t next = 1009;
  std::uint64_t operator()() { return next += 7; }
};

void fill(link::LinkStatus& link, Different& number) {
  auto& udp = link.udp;
  for (auto* each :
       {&link.streams,         &link.bytes_sent,      &link.bytes_received,    &link.delivery_rate_bits,
        &link.credit_granted,  &link.bytes_retained,  &link.carriers_attached, &udp.datagram_bytes,
        &udp.pacing_rate_bits, &udp.line_rate_bits,   &udp.delivery_rate_bits, &udp.fallbacks,
        &udp.packets_sent,     &udp.packets_received, &udp.packets_lost,       &udp.spurious_losses,
        &udp.packets_dropped,  &udp.bytes_sent,       &udp.bytes_received,     &udp.repairs_sent,
        &udp.repairs_received, &udp.repairs_wasted,   &udp.repairs_late,       &udp.symbols_recovered})
    *each = number();
  using std::chrono::microseconds;
  for (auto* each : {&link.smoothed_rtt, &udp.smoothed_rtt, &udp.base_rtt, &udp.queue, &udp.timer_lateness,
                     &udp.worst_timer_lateness})
    *each = microseconds{number()};
  link.state_age = std::chrono::seconds{number()};
  udp.erasure_rate = 0.0123;
  link::PathStatus& path = link.paths.emplace_back();
  path.name = "mpls";
  path.cost = static_cast<std::uint32_t>(number());
  for (auto* each : {&path.udp.pacing_rate_bits, &path.udp.packets_sent, &path.udp.packets_lost,
                     &path.udp.bytes_sent, &path.udp.bytes_received})
    *each = number();
  path.udp.smoothed_rtt = microseconds{number()};
  path.udp.queue = microseconds{number()};
  path.udp.erasure_rate = 0.0234;
  auto& out = link.reduction.encoder;
  auto& in = link.reduction.decoder;
  for (auto* each : {&out.blocks,
                     &out.bytes.plain_bytes,
                     &out.bytes.after_dedup_bytes,
                     &out.bytes.encoded_bytes,
                     &out.bytes.copied_bytes,
                     &out.bytes.disk_bytes,
                     &out.compressed_bytes,
                     &out.passed_bytes,
                     &out.opened_bytes,
                     &out.incompressible_blocks,
                     &out.horizon_stalls,
                     &out.needs,
                     &out.mismatches,
                     &out.gone,
                     &out.restarts,
                     &out.loaded_bytes,
                     &out.ring_bytes,
                     &out.ring_filled_bytes,
                     &out.unanswered_bytes,
                     &in.blocks,
                     &in.bytes.plain_bytes,
                     &in.bytes.after_dedup_bytes,
                     &in.bytes.encoded_bytes,
                     &in.needs,
                     &in.mismatches,
                     &in.recovered,
                     &in.failed,
                     &in.loaded_bytes,
                     &in.segments_refused,
                     &in.ring_bytes,
                     &in.ring_filled_bytes})
    *each = number();
  out.bytes.copies = out.hits.back();  // their sum
}

TEST_CASE("every number of the status is in the metrics") {
  RunningApi api;
  Different number;
  auto& now = api.daemon.now;
  fill(now.links.front(), number);
  for (auto* each : {&now.flows_limit,        &now.handshakes,          &now.handshakes_limit,
                     &now.memory_bytes,       &now.memory_limit_bytes,  &now.module_bytes,
                     &now.ahead_bytes,        &now.dictionary_bytes,    &now.dictionary_limit_bytes,
                     &now.disk->cap_bytes,    &now.disk->disk_bytes,    &now.disk->put_bytes,
                     &now.disk->refused,      &now.disk->refused_bytes, &now.disk->failed,
                     &now.disk->wrong_digest, &now.disk->made_room,     &now.disk->damaged,
                     &now.disk->lost,         &now.disk->loads,         &now.disk->load_bytes,
                     &now.disk->loads_failed, &now.disk->lookups,       &now.disk->hits,
                     &now.disk->queued_bytes, &now.disk->memory_bytes,  &now.disk->put})
    *each = number();
  auto& objects = now.objects.emplace();
  for (auto* each : {&objects.cap_bytes, &objects.disk_bytes, &objects.memory_bytes, &objects.queued_bytes,
                     &objects.objects, &objects.put, &objects.put_bytes, &objects.refused, &objects.failed,
                     &objects.evicted, &objects.damaged, &objects.reads, &objects.read_bytes,
                     &objects.reads_failed, &objects.reads_late, &objects.reads_skipped})
    *each = number();
  now.memory_parts = {{"credit", number(), number()}, {"ahead", number(), number()}};
  now.connections_ahead = number();
  now.connections_ahead_so_far = {number(), number(), number(), number(), number()};
  now.confinement.landlock_version = 3;
  now.flow_export = {number(), number(), number(), number()};
  now.syslog = {number(), number()};
  now.metric_export = {number(), number(), number()};
  auto& flow = api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445");
  flow.bytes = {number(), number(), number(), number()};
  flow.blocks.out = {number(), number(), number(), number()};
  flow.blocks.in = {number(), number(), number(), number()};
  api.start();
  const auto found = samples(get(api, "/metrics").body);
  const auto status = get(api, "/v1/status").json();
  std::size_t looked = 0;
  const auto look = [&](const std::string& path, double value) {
    // Made of others; the bounds of a histogram and ports are labels.
    if (path.starts_with(".verdict.") || path.ends_with("[].below") || path.ends_with("ports[].port")) return;
    ++looked;
    const auto near = [&](double wanted) {
      const auto at = found.lower_bound(wanted - 1e-9);
      return at != found.end() && *at <= wanted + 1e-9;
    };
    INFO(path << " is " << value);
    CHECK((near(value) || (path.ends_with("_ms") && near(value / 1000))));
  };
  walk(status, "", look);
  CHECK(looked > 100);
}

}  // namespace
}  // namespace longhaul::control
